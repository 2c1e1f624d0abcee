import {
  type CommitResult,
  type LoadedShop,
  planCommit,
  type ShopState,
  type Submission,
  type TextChange,
} from "../../src/domain/decide/commit.ts";
import { type CommitKeys, keysOf } from "../../src/domain/decide/commit-keys.ts";
import { type LoadedRows, missingCustomers, noRows, occurrenceKey } from "../../src/domain/decide/snapshot.ts";
import type { NewDelivery } from "../../src/domain/deliveries/event-queue.ts";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import { createTextSearch, type StoredText, TEXT_PLACES, type TextPlace } from "../../src/domain/people/redaction.ts";
import type { RewardRecord } from "../../src/domain/records/record-schemas.ts";
import type { Row } from "../../src/domain/rows.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import { START } from "./app.ts";

/** The content of a shop's mirror, in a form that tests can compare. */
export interface MirrorContents {
  rows: Record<string, Row & { redactedAfter?: null }>;
  deliveries: Omit<NewDelivery, "id">[];
  inbox: Record<number, string>;
  state: Pick<ShopState, "changeCount" | "counts">;
}

/** An engine in memory that uses `planCommit`. It has one shop, for which every event is queued. */
export class MemoryMirror {
  readonly shop: MirroredShop = { id: 1, domain: "alpha.myshopify.com", firstDomain: "alpha.myshopify.com" };
  readonly rows = new Map<string, Row>();
  readonly deliveries: NewDelivery[] = [];
  readonly inbox = new Map<number, string>();
  private state: ShopState = {
    plan: "pro",
    url: "https://hooks.example.com",
    topics: TOPIC_NAMES,
    secretVersion: 1,
    triggers: TRIGGER_HANDLES,
    isConnected: true,
    changeCount: 0,
    spanNumber: 0,
    previousSpanCount: 0,
    counts: { customers: 0, subscriptions: 0, orders: 0 },
  };
  private lastId = 0;

  constructor(inbox: readonly string[] = []) {
    for (const [index, body] of inbox.entries()) this.inbox.set(index + 1, body);
  }

  commit(submissions: readonly Submission[], now = START): CommitResult[] {
    const loaded = new Map<number, LoadedShop>(
      keysOf(submissions).map((keys) => [
        keys.shop.id,
        { keys, state: this.state, rows: this.load(keys), reads: new Map() },
      ]),
    );
    const plan = planCommit(submissions, loaded, now, () => `whd_${++this.lastId}`);
    for (const { rows, changeCount, counts, deliveries, inboxNumbers, texts, redactedDeliveries } of plan.changes) {
      for (const { row } of rows) this.rows.set(keyOf(row), row);
      this.state = { ...this.state, changeCount, counts };
      this.deliveries.push(...deliveries);
      for (const number of inboxNumbers) this.inbox.delete(number);
      for (const change of texts) this.writeText(change);
      for (const number of redactedDeliveries) Object.assign(this.deliveries[number] ?? {}, { isRedacted: true });
    }
    return plan.results;
  }

  contents(): MirrorContents {
    const { changeCount, counts } = this.state;
    const deliveries = this.deliveries.map(({ id, body, ...rest }) => ({ ...rest, body: body.replace(id, "whd_") }));
    return {
      // Leaves out `redactedAfter`: the change count before a redaction depends on the grouping into commits.
      rows: Object.fromEntries(Array.from(this.rows, ([key, row]) => [key, { ...row, redactedAfter: null }])),
      deliveries,
      inbox: Object.fromEntries(this.inbox),
      state: { changeCount, counts },
    };
  }

  private load(keys: CommitKeys): LoadedRows {
    const loaded = noRows();
    for (const row of this.rows.values()) {
      const ofPerson = Array.from(keys.redactedPeople, (gid) => keys.ids.customer(gid));
      if (row.kind === "order" && ofPerson.includes(row.resource.customerId)) keys.orders.add(row.resource.id);
      if (row.kind === "subscription" && ofPerson.includes(row.resource.customerId)) {
        keys.subscriptions.add(row.resource.id);
        keys.customFields.add(row.resource.id);
      }
    }
    for (const id of keys.customFields) loaded.fieldValues.set(id, {});
    const load = (id: string) => loaded.rows.set(id, this.rows.get(id) ?? null);
    for (const ids of [keys.subscriptions, keys.orders, keys.customers]) for (const id of ids) load(id);
    for (const id of missingCustomers(loaded)) load(id);
    for (const type of ["reward", "cancel_flow"] as const) {
      for (const id of keys.occurrences[type])
        loaded.occurrences.set(occurrenceKey(type, id), this.rows.has(occurrenceKey(type, id)));
    }
    const mentions = createTextSearch(keys.shop.domain, keys.redactedPeople);
    for (const place of TEXT_PLACES)
      loaded.texts.push(...this.texts(place).filter(({ text }) => mentions(place, text)));
    return loaded;
  }

  private texts(place: TextPlace): StoredText[] {
    switch (place) {
      case "delivery":
        return this.deliveries.flatMap(({ kind, body }, index) =>
          kind === "webhook" ? [{ place, key: index, text: body }] : [],
        );
      case "reward":
        return [...this.rows.values()].flatMap((row) =>
          row.kind === "occurrence" && row.record.type === "reward"
            ? [{ place, key: row.record.id, text: JSON.stringify(row.record) }]
            : [],
        );
      case "inbox":
        return [...this.inbox].map(([key, text]) => ({ place, key, text }));
    }
  }

  private writeText({ before: { place, key }, after: { text } }: TextChange): void {
    if (place === "inbox") this.inbox.set(Number(key), text);
    if (place === "reward") {
      const record = JSON.parse(text) as RewardRecord;
      this.rows.delete(occurrenceKey("reward", String(key)));
      this.rows.set(occurrenceKey("reward", record.id), { kind: "occurrence", record });
    }
    const delivery = place === "delivery" ? this.deliveries[Number(key)] : undefined;
    if (delivery !== undefined) delivery.body = text;
  }
}

function keyOf(row: Row): string {
  return row.kind === "occurrence" ? occurrenceKey(row.record.type, row.record.id) : row.resource.id;
}
