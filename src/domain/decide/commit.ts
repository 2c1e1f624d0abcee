import { deliveriesOf, type EventTargets, holdsReward, type NewDelivery } from "../deliveries/event-queue.ts";
import type { DataRequest } from "../people/data-request.ts";
import { type Redaction, redactionOf, type StoredText } from "../people/redaction.ts";
import type { MirrorRecord, RedactionRecord } from "../records/platform-records.ts";
import type { RewardRecord } from "../records/record-schemas.ts";
import type { Refusal } from "../records/refusal.ts";
import type { Resource } from "../resources.ts";
import type { OccurrenceRow, Row } from "../rows.ts";
import type { ShopRef } from "../shop.ts";
import { decide } from "./change.ts";
import type { CommitKeys } from "./commit-keys.ts";
import type { Decision } from "./decision.ts";
import { type LoadedRows, ShopSnapshot } from "./snapshot.ts";

/** Records of one shop that are applied together or not at all. */
export interface Submission {
  shop: ShopRef;
  records: readonly MirrorRecord[];
  /**
   * The platform webhooks that brought the records, by their numbers in the inbox. They leave the inbox in the same
   * commit.
   */
  inboxNumbers?: readonly number[];
  /** The whole readings of contracts that gave the records. They are noted in the same commit, and change no row. */
  reads?: readonly ContractRead[];
  /** Requests for data that the same platform webhooks brought. One that is known changes nothing. */
  dataRequests?: readonly DataRequest[];
  /**
   * Events are queued only for what happened at this time or later, epoch milliseconds; 0 (the default) queues all,
   * Infinity none. An event whose source gives no time happens now.
   */
  eventsSince?: number;
  /**
   * Whether it is kept only while this node is the one that works for the shop. A node that stood still could otherwise
   * bring old data after another node has brought newer.
   */
  isNodeWork?: boolean;
}

/** A reading of a contract and everything that can change of it. */
export interface ContractRead {
  /** The contract's gid. */
  contract: string;
  /** Epoch milliseconds. */
  beganAt: number;
  /** Gids of the orders that were read with it. An order that is mirrored as charged is read only when it changed. */
  orders: readonly string[];
}

/** The result of a submission. A refusal names the record by its place in the submission, counted from 0. */
export type CommitResult =
  | { accepted: number; changed: number; events: number }
  | { refused: Refusal & { index: number } };

export type ResourceCounts = Record<Resource, number>;

/**
 * Changes are counted for each span of this length, so that readers can ask for those since a time. They get one span
 * more (`changeBefore`), because a change can be seen later than its time says: its commit takes a while, and the clock
 * of its node can be late. Both together must be shorter than a span. The longest wait is that of a command for
 * SQLite's lock (cli/context.ts). On PostgreSQL, a commit that waits for a synchronous standby can take longer.
 */
export const SPAN_MS = 30_000;

/** What a commit has to know of a shop beside its rows. */
export interface ShopState extends EventTargets {
  /** How many times a row of the shop was written; each row keeps the number of its own last write. */
  changeCount: number;
  /** The last span for which `change_spans` has a number, counted since 1970; 0 for none. */
  spanNumber: number;
  /** The change count after the last commit that noted its span. */
  previousSpanCount: number;
  counts: ResourceCounts;
}

export interface LoadedShop {
  keys: CommitKeys;
  state: ShopState;
  rows: LoadedRows;
}

/** What a commit writes for one shop. */
export interface ShopChanges {
  shop: ShopRef;
  rows: { row: Row; changeNumber: number }[];
  /** The shop's new totals. */
  changeCount: number;
  spanNumber: number;
  counts: ResourceCounts;
  /** How many changes there were before the span, if it is a new one; else null. */
  countBeforeSpan: number | null;
  deliveries: NewDelivery[];
  /** Items that leave the inbox. */
  inboxNumbers: number[];
  /** Readings to note, in order. */
  reads: ContractRead[];
  dataRequests: DataRequest[];
  /** Stored texts without the personal data that a redaction removed. */
  texts: TextChange[];
  /** The numbers of stored deliveries that name somebody who was redacted. Their answers are removed. */
  redactedDeliveries: number[];
}

export interface TextChange {
  before: StoredText;
  after: StoredText;
}

export interface CommitPlan {
  /** One for each submission, in order. */
  results: CommitResult[];
  changes: ShopChanges[];
}

/**
 * Plans a whole commit: applies the submissions in their order to what was loaded, and lists everything that has to be
 * written. Pure, so every engine calls it between its reads and its one write. Any grouping of the same submissions
 * into commits ends in the same mirror, events and redacted texts.
 * @param shops what was loaded, by shop id; a shop that is missing was removed
 * @param now epoch milliseconds
 * @param newId gives a new delivery id
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

/** Refuses records of a shop that was removed since its domain was looked up. */
export function removedShop({ domain }: ShopRef): { refused: Refusal & { index: number } } {
  return { refused: { index: 0, field: "", reason: `is for a shop that was removed: ${domain}` } };
}

const RESOURCE_OF = { customer: "customers", subscription: "subscriptions", order: "orders" } as const;

/**
 * A redaction applies to everything stored, and to the deliveries and rewards that the commit added before it. These
 * are their numbers.
 */
interface PlannedRedaction {
  redaction: Redaction;
  deliveries: number;
  rewards: number;
}

/** The changes of one shop, submission by submission. */
class ShopDraft {
  private readonly shop: ShopRef;
  private readonly state: ShopState;
  private readonly snapshot: ShopSnapshot;
  private readonly storedTexts: readonly StoredText[];
  private readonly now: number;
  private readonly newId: () => string;
  private readonly deliveries: NewDelivery[] = [];
  private readonly rewards: RewardRow[] = [];
  private readonly redactions: PlannedRedaction[] = [];
  private readonly inboxNumbers = new Set<number>();
  private readonly reads: ContractRead[] = [];
  private readonly dataRequests: DataRequest[] = [];

  constructor(shop: ShopRef, { keys, state, rows }: LoadedShop, now: number, newId: () => string) {
    this.shop = shop;
    this.state = state;
    this.snapshot = new ShopSnapshot(keys.ids, rows);
    this.storedTexts = rows.texts;
    this.now = now;
    this.newId = newId;
  }

  apply({ records, inboxNumbers = [], reads = [], dataRequests = [], eventsSince = 0 }: Submission): CommitResult {
    const lists = [this.deliveries, this.rewards, this.redactions];
    const lengths = lists.map(({ length }) => length);
    let changed = 0;
    for (const [index, record] of records.entries()) {
      const decision = this.applyRecord(record, eventsSince);
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
    this.dataRequests.push(...dataRequests);
    return { accepted: records.length, changed, events: this.deliveries.length - (lengths[0] ?? 0) };
  }

  private applyRecord(record: MirrorRecord, eventsSince: number): Decision {
    // What is known of a person has to be read before it is removed.
    if (record.type === "redaction") this.planRedaction(record);
    const decision = decide(this.snapshot, record, this.now);
    if ("refused" in decision) return decision;
    for (const row of decision.rows) {
      this.snapshot.put(row);
      if (isReward(row)) this.rewards.push(row);
    }
    const events = decision.events.filter(({ at = this.now }) => at >= eventsSince);
    if (events.length > 0 && eventsSince !== Number.POSITIVE_INFINITY) {
      this.deliveries.push(...deliveriesOf(events, this.shop, this.state, this.now, this.newId));
    }
    return decision;
  }

  private planRedaction({ shopifyId, contacts }: RedactionRecord): void {
    const person = this.snapshot.customer(this.snapshot.ids.customer(shopifyId))?.resource;
    const redaction = redactionOf(this.shop.domain, shopifyId, person, contacts);
    this.redactions.push({ redaction, deliveries: this.deliveries.length, rewards: this.rewards.length });
  }

  changes(): ShopChanges {
    const { counts, changeCount, spanNumber, previousSpanCount } = this.state;
    const newCounts = { ...counts };
    const redactedRewards = new Map(this.rewards.map((row, index) => [row, this.redactedReward(row, index)]));
    const rows = this.snapshot.changedRows().map(({ row, isNew }, index) => {
      if (isNew && row.kind !== "occurrence") newCounts[RESOURCE_OF[row.kind]] += 1;
      return { row: isReward(row) ? (redactedRewards.get(row) ?? row) : row, changeNumber: changeCount + index + 1 };
    });
    // A clock that was set back does not make a span earlier than one that is noted.
    const span = Math.floor(this.now / SPAN_MS);
    const isNewSpan = rows.length > 0 && span > spanNumber;
    const redacted = this.redactedTexts();
    return {
      shop: this.shop,
      rows,
      changeCount: changeCount + rows.length,
      spanNumber: isNewSpan ? span : spanNumber,
      // What changed before spans were noted belongs to the first one.
      countBeforeSpan: isNewSpan ? (spanNumber === 0 ? 0 : previousSpanCount) : null,
      counts: newCounts,
      deliveries: this.deliveries.map((delivery, index) => this.redactedDelivery(delivery, index)),
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
    if (!holdsReward(delivery)) return delivery;
    const redactions = this.redactions.filter(({ deliveries }) => index < deliveries);
    return { ...delivery, body: redact({ place: "delivery", key: delivery.id, text: delivery.body }, redactions).text };
  }

  /** The stored texts that name a redacted person. An inbox item that this commit removes is gone anyway. */
  private redactedTexts(): TextChange[] {
    return this.storedTexts
      .filter(({ place, key }) => place !== "inbox" || !this.inboxNumbers.has(Number(key)))
      .map((before) => ({ before, after: redact(before, this.redactions) }))
      .filter(({ before, after }) => after !== before);
  }
}

type RewardRow = OccurrenceRow & { record: RewardRecord };

function isReward(row: Row): row is RewardRow {
  return row.kind === "occurrence" && row.record.type === "reward";
}

function redact(stored: StoredText, redactions: readonly PlannedRedaction[]): StoredText {
  return redactions.reduce((current, { redaction }) => redaction(current), stored);
}
