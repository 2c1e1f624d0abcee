import type { Database } from "bun:sqlite";
import { decide } from "../../domain/change.ts";
import type { Event } from "../../domain/event.ts";
import { customerId, orderId, subscriptionId } from "../../domain/ids.ts";
import type { MirrorRecord } from "../../domain/platform-records.ts";
import type { Refusal } from "../../domain/records.ts";
import type { Order } from "../../domain/resources.ts";
import { Batch } from "./batch.ts";
import { type OutboxSession, openOutbox } from "./outbox.ts";
import { openRedaction } from "./redaction.ts";
import { mirrorRows } from "./rows.ts";

/** Records of one shop that are applied together or not at all. */
export interface Submission {
  shop: { id: number; domain: string };
  records: readonly MirrorRecord[];
  /** The platform's webhooks that brought them, by their numbers in the inbox: with this they come to their end. */
  inboxNumbers?: readonly number[];
  /** What happened before this time, epoch milliseconds, is no news and not queued, where the record says when it happened. */
  newsSince?: number;
  /** Nothing is queued for what these records change: a first load tells no one of what happened long ago. */
  quiet?: boolean;
}

/** A refusal names the record by its place in the submission, counted from 0. */
export type CommitResult = { accepted: number; changed: number; events: number } | { refused: Refusal & { index: number } };

export interface MirrorStore {
  /**
   * Applies submissions in order, in one transaction: when this resolves, what was not refused is on the disk. A refused
   * submission leaves no trace, and the others are applied all the same. The deliveries for what changed are queued with it;
   * `events` counts them.
   * @param now epoch milliseconds
   */
  applyRecords(submissions: readonly Submission[], now: number): Promise<CommitResult[]>;
  /** What the mirror has of a contract's orders: those of the source `recurring` by cycle number, the checkout as 0. */
  ordersOf(domain: string, contractGid: string): Promise<Map<number, Order>>;
  /** The gid of the customer who holds a contract; undefined for one that is not in the mirror. */
  holderOf(domain: string, contractGid: string): Promise<string | undefined>;
}

/** So many cycles in a row without an order, and there is none behind them. */
const MAX_GAP = 12;

export function mirrorStore(db: Database, random: (bytes: number) => Uint8Array): MirrorStore {
  const rows = mirrorRows(db);
  const outbox = openOutbox(db, random);
  const exists = db.prepare<{ 1: number }, [number]>("SELECT 1 FROM shops WHERE id = ?");
  const addChanges = db.prepare<{ last: number }, [number, number]>(
    "UPDATE shops SET change_count = change_count + ? WHERE id = ? RETURNING change_count AS last",
  );
  const settle = db.prepare("DELETE FROM inbox WHERE shop_id = ? AND number = ?");
  const redact = openRedaction(db);

  function changeNumbers(shopId: number, n: number): number {
    return (addChanges.get(n, shopId)?.last ?? 0) - n + 1;
  }

  function apply(
    { shop, records, inboxNumbers = [], quiet = false, newsSince = 0 }: Submission,
    batch: Batch,
    session: OutboxSession,
    now: number,
  ): CommitResult {
    // Removed by another process since the caller looked it up.
    if (exists.get(shop.id) === null) return { refused: { index: 0, field: "", reason: `is for a shop that was removed: ${shop.domain}` } };
    const draft = batch.draft(shop);
    const events: Event[] = [];
    const redactions: (() => void)[] = [];
    let changed = 0;
    for (const [index, record] of records.entries()) {
      const decision = decide(draft, record, now);
      if ("refused" in decision) return { refused: { index, ...decision.refused } };
      if (decision.rows.length > 0) changed += 1;
      if (record.type === "redaction") {
        const person = draft.customer(customerId(shop.domain, record.shopifyId))?.resource;
        redactions.push(() => redact(shop, record.shopifyId, person));
      }
      for (const row of decision.rows) draft.put(row);
      events.push(...decision.events);
    }
    for (const each of redactions) each();
    for (const number of inboxNumbers) settle.run(shop.id, number);
    draft.keep();
    const news = events.filter(({ at = now }) => at >= newsSince);
    return { accepted: records.length, changed, events: quiet ? 0 : outbox.queue(session, shop, news, now) };
  }

  return {
    async applyRecords(submissions, now) {
      return db
        .transaction(() => {
          const batch = new Batch(rows);
          const session: OutboxSession = new Map();
          const results = submissions.map((submission) => apply(submission, batch, session, now));
          batch.write(changeNumbers);
          return results;
        })
        .immediate();
    },

    async holderOf(domain, contractGid) {
      const contract = rows.subscription(subscriptionId(domain, contractGid));
      return contract === undefined ? undefined : rows.customer(contract.resource.customerId)?.resource.shopifyId;
    },

    async ordersOf(domain, contractGid) {
      const orders = new Map<number, Order>();
      let last = 0;
      for (let cycle = 0; cycle <= last + MAX_GAP; cycle += 1) {
        const found = rows.order(orderId(domain, contractGid, cycle === 0 ? "checkout" : "recurring", cycle));
        if (found === undefined) continue;
        orders.set(cycle, found.resource);
        last = cycle;
      }
      return orders;
    },
  };
}
