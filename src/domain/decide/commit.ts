import { type EventTargets, type NewDelivery, queueEvents, type UnsentEvent } from "../deliveries/event-queue.ts";
import type { FieldDefinition } from "../fields/definition.ts";
import type { DataRequest } from "../people/data-request.ts";
import { type Redaction, redact, redactionOf, type StoredText } from "../people/redaction.ts";
import { type ContractRead, refuseOutdated } from "../platform/contract-read.ts";
import type { MirrorRecord, RedactionRecord } from "../records/platform-records.ts";
import type { RewardRecord } from "../records/record-schemas.ts";
import type { Refusal } from "../records/refusal.ts";
import type { Resource } from "../resources.ts";
import { type CustomFieldsRow, isReward, type RewardRow, type Row } from "../rows.ts";
import type { MirroredShop } from "../shop.ts";
import { decide } from "./change.ts";
import type { CommitKeys } from "./commit-keys.ts";
import { withFirstValues } from "./custom-field.ts";
import { type RecordSource, withoutRedactedSince } from "./record-source.ts";
import { type Decision, type LoadedRows, NOTHING, ShopSnapshot } from "./snapshot.ts";

/** Records of one shop. The commit applies all of them or none. */
export interface Submission {
  shop: MirroredShop;
  records: readonly MirrorRecord[];
  /** Numbers of the inbox items that brought the records. The items leave the inbox in the same commit. */
  inboxNumbers?: readonly number[];
  /** The contract readings that the records come from. The same commit stores the readings. */
  reads?: readonly ContractRead[];
  /**
   * Data requests from the platform webhooks of `inboxNumbers`. A data request that is already stored changes nothing.
   */
  dataRequests?: readonly DataRequest[];
  /**
   * Epoch milliseconds. Events before this time are not queued. The default is 0: all events are queued. With Infinity,
   * no event is queued. If an event has no time, the current time is used.
   */
  eventsSince?: number;
  /**
   * The source of an import's records. If a person was redacted after the records were written, the person's data is
   * left out.
   */
  source?: RecordSource;
  /**
   * Whether to refuse the commit if another node has taken over the shop's work. Otherwise a node that was paused could
   * overwrite newer data of the other node.
   */
  isNodeWork?: boolean;
}

/**
 * The result of a submission. `index` is the position of the refused record, counted from 0. `leftOut` is the number of
 * records that lost personal data (see `Submission.source`); absent for 0.
 */
export type CommitResult =
  | { accepted: number; changed: number; events: number; leftOut?: number }
  | { refused: Refusal & { index: number } };

export type ResourceCounts = Record<Resource, number>;

/**
 * Length of a span. Changes are counted for each span, so that readers can ask for changes since a time. Readers read
 * one extra span (`changeBefore`), because commits become visible late: a commit takes a while, and its node's clock
 * can be behind. Both delays together must be shorter than a span. The longest delay is a command's wait for SQLite's
 * lock (cli/context.ts). On PostgreSQL, a commit that waits for a synchronous standby can take longer.
 */
export const SPAN_MS = 30_000;

/** The state of a shop that a commit needs in addition to its rows. */
export interface ShopState extends EventTargets {
  /** How many changes the shop has had. Each row stores the number of its last change. */
  changeCount: number;
  /** Number of the last span in `change_spans` (epoch milliseconds divided by SPAN_MS); 0 if there is no span yet. */
  spanNumber: number;
  /** The change count after the last commit that noted its span. An older version of this program notes no spans. */
  previousSpanCount: number;
  counts: ResourceCounts;
}

export interface LoadedShop {
  keys: CommitKeys;
  state: ShopState;
  rows: LoadedRows;
  /** The stored readings of the contracts in the submissions, by contract gid. */
  reads: ReadonlyMap<string, Pick<ContractRead, "renewals">>;
}

/** What a commit writes for one shop. */
export interface ShopChanges {
  shop: MirroredShop;
  rows: { row: Row; isNew: boolean; changeNumber: number }[];
  /** Custom fields of subscriptions. Nothing is stored for a subscription without values. */
  customFields: CustomFieldsRow[];
  /** The shop's new definitions of custom fields; null unless a field gets its first value in this commit. */
  fields: FieldDefinition[] | null;
  /** The shop's state after the commit. */
  changeCount: number;
  spanNumber: number;
  counts: ResourceCounts;
  /** The change count before the span `spanNumber`; null if this span is not new. */
  countBeforeSpan: number | null;
  deliveries: NewDelivery[];
  /** The events for which no delivery is queued. */
  unsent: UnsentEvent[];
  /** Numbers of the inbox items that leave the inbox. */
  inboxNumbers: number[];
  /** Contract readings to store, in order. */
  reads: ContractRead[];
  dataRequests: DataRequest[];
  /** Stored texts without the personal data that a redaction removed. */
  texts: TextChange[];
  /** Numbers of the stored deliveries that name a redacted person. The answers to these deliveries are removed. */
  redactedDeliveries: number[];
}

export interface TextChange {
  before: StoredText;
  after: StoredText;
}

export interface CommitPlan {
  /** One result for each submission, in the same order. */
  results: CommitResult[];
  changes: ShopChanges[];
}

/**
 * Plans a whole commit: applies the submissions in order to the loaded rows, and lists everything to write. Pure: each
 * engine calls it between its reads and its one write. Any grouping of the same submissions into commits gives the same
 * mirror, events and redacted texts.
 * @param shops by shop id; a missing shop was removed
 * @param now epoch milliseconds
 * @param newId returns a new delivery id
 */
export function planCommit(
  submissions: readonly Submission[],
  shops: ReadonlyMap<number, LoadedShop>,
  now: number,
  newId: () => string,
): CommitPlan {
  const drafts = new Map<number, ShopDraft>();
  const results = submissions.map((submission): CommitResult => {
    const { shop } = submission;
    const loaded = shops.get(shop.id);
    if (loaded === undefined) return removedShop(shop);
    const draft = drafts.get(shop.id) ?? new ShopDraft(shop, loaded, now, newId);
    drafts.set(shop.id, draft);
    return draft.apply(submission);
  });
  return { results, changes: [...drafts.values()].map((draft) => draft.changes()) };
}

/** Refuses a submission, because the shop was removed after its domain was looked up. */
function removedShop({ domain }: MirroredShop): { refused: Refusal & { index: number } } {
  return { refused: { index: 0, field: "", reason: `is for a shop that was removed: ${domain}` } };
}

const RESOURCE_OF = { customer: "customers", subscription: "subscriptions", order: "orders" } as const;

/** A redaction of all stored texts, and of the deliveries and rewards that the commit added before the redaction. */
interface PlannedRedaction {
  redaction: Redaction;
  /** How many deliveries and rewards the commit added before the redaction. */
  deliveries: number;
  rewards: number;
}

/** Collects the changes of one shop, submission by submission. */
class ShopDraft {
  private readonly shop: MirroredShop;
  private readonly state: ShopState;
  private readonly snapshot: ShopSnapshot;
  private readonly storedTexts: readonly StoredText[];
  private readonly now: number;
  private readonly newId: () => string;
  private readonly deliveries: NewDelivery[] = [];
  private readonly unsent: UnsentEvent[] = [];
  private readonly rewards: RewardRow[] = [];
  private readonly redactions: PlannedRedaction[] = [];
  private readonly inboxNumbers = new Set<number>();
  private readonly reads: ContractRead[] = [];
  private readonly lastReads: Map<string, Pick<ContractRead, "renewals">>;
  private readonly dataRequests: DataRequest[] = [];

  constructor(shop: MirroredShop, { keys, state, rows, reads }: LoadedShop, now: number, newId: () => string) {
    this.shop = shop;
    this.state = state;
    this.snapshot = new ShopSnapshot(keys.ids, state.changeCount, rows);
    this.storedTexts = rows.texts;
    this.lastReads = new Map(reads);
    this.now = now;
    this.newId = newId;
  }

  apply({ records, source, inboxNumbers = [], reads = [], dataRequests = [], ...more }: Submission): CommitResult {
    const outdated = refuseOutdated(reads, this.lastReads);
    if (outdated !== undefined) return { refused: { index: 0, ...outdated } };
    const lists = [this.deliveries, this.unsent, this.rewards, this.redactions];
    const lengths = lists.map(({ length }) => length);
    let [changed, leftOut] = [0, 0];
    for (const [index, given] of records.entries()) {
      const record = source ? withoutRedactedSince(this.snapshot, given, source) : given;
      if (record !== given) leftOut += 1;
      const decision = record === undefined ? NOTHING : this.applyRecord(record, more.eventsSince ?? 0);
      if ("refused" in decision) {
        this.snapshot.dropDrafts();
        for (const [n, list] of lists.entries()) list.length = lengths[n] ?? 0;
        return { refused: { index, ...decision.refused } };
      }
      if (decision.rows.length > 0) changed += 1;
    }
    this.snapshot.keepDrafts();
    for (const number of inboxNumbers) this.inboxNumbers.add(number);
    this.reads.push(...reads);
    for (const read of reads) if (read.renewals !== undefined) this.lastReads.set(read.contract, read);
    this.dataRequests.push(...dataRequests);
    const events = this.deliveries.length - (lengths[0] ?? 0);
    return { accepted: records.length, changed, events, ...(leftOut > 0 && { leftOut }) };
  }

  private applyRecord(record: MirrorRecord, eventsSince: number): Decision {
    // A redaction needs the person's data, so it is planned before the customer's row is emptied.
    if (record.type === "redaction") this.planRedaction(record);
    const decision = decide(this.snapshot, record, this.now);
    if ("refused" in decision) return decision;
    for (const row of decision.rows) {
      this.snapshot.put(row);
      if (isReward(row)) this.rewards.push(row);
    }
    for (const fields of decision.customFields ?? []) this.snapshot.putFields(fields);
    const { now, newId } = this;
    const queued = queueEvents(decision.events, this.shop, this.state, { now, since: eventsSince, newId });
    this.deliveries.push(...queued.deliveries);
    this.unsent.push(...queued.unsent);
    return decision;
  }

  private planRedaction({ shopifyId, contacts }: RedactionRecord): void {
    const person = this.snapshot.customer(this.snapshot.ids.customer(shopifyId))?.resource;
    const redaction = redactionOf(this.shop.firstDomain, shopifyId, person, contacts);
    this.redactions.push({ redaction, deliveries: this.deliveries.length, rewards: this.rewards.length });
  }

  changes(): ShopChanges {
    const { counts, changeCount, spanNumber, previousSpanCount } = this.state;
    const newCounts = { ...counts };
    const redactedRewards = new Map(this.rewards.map((row, index) => [row, this.redactedReward(row, index)]));
    const rows = this.snapshot.changedRows().map(({ row, isNew }, index) => {
      if (isNew && row.kind !== "occurrence") newCounts[RESOURCE_OF[row.kind]] += 1;
      const written = isReward(row) ? (redactedRewards.get(row) ?? row) : row;
      return { row: written, isNew, changeNumber: changeCount + index + 1 };
    });
    // If the clock was set back, the current span is earlier than the last noted span. Then changes are counted in the
    // last noted span.
    const span = Math.floor(this.now / SPAN_MS);
    const isNewSpan = rows.length > 0 && span > spanNumber;
    const redacted = this.redactedTexts();
    const customFields = this.snapshot.changedCustomFields();
    return {
      shop: this.shop,
      rows,
      customFields,
      fields: withFirstValues(this.snapshot.fields, customFields),
      changeCount: changeCount + rows.length,
      spanNumber: isNewSpan ? span : spanNumber,
      // If no span was noted before, all earlier changes are counted in this span. So the count before the span is 0.
      countBeforeSpan: isNewSpan ? (spanNumber === 0 ? 0 : previousSpanCount) : null,
      counts: newCounts,
      deliveries: this.deliveries.map((delivery, index) => this.redactedDelivery(delivery, index)),
      unsent: this.unsent,
      inboxNumbers: [...this.inboxNumbers],
      reads: this.reads,
      dataRequests: this.dataRequests,
      texts: redacted.filter(({ before, after }) => after.text !== before.text),
      redactedDeliveries: redacted.flatMap(({ before }) => (before.place === "delivery" ? [Number(before.key)] : [])),
    };
  }

  private redactedReward(row: RewardRow, index: number): RewardRow {
    const redactions = this.redactions.filter(({ rewards }) => index < rewards);
    if (redactions.length === 0) return row;
    const { text } = redact({ place: "reward", key: row.record.id, text: JSON.stringify(row.record) }, redactions);
    return { ...row, record: JSON.parse(text) as RewardRecord };
  }

  private redactedDelivery(delivery: NewDelivery, index: number): NewDelivery {
    const redactions = this.redactions.filter(({ deliveries }) => index < deliveries);
    if (delivery.kind !== "webhook" || redactions.length === 0) return delivery;
    const before: StoredText = { place: "delivery", key: delivery.id, text: delivery.body };
    const after = redact(before, redactions);
    return after === before ? delivery : { ...delivery, body: after.text, isRedacted: true };
  }

  /** Redacts the stored texts that name a redacted person, except inbox items that this commit removes. */
  private redactedTexts(): TextChange[] {
    return this.storedTexts
      .filter(({ place, key }) => place !== "inbox" || !this.inboxNumbers.has(Number(key)))
      .map((before) => ({ before, after: redact(before, this.redactions) }))
      .filter(({ before, after }) => after !== before);
  }
}
