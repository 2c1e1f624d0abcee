import type { Database } from "bun:sqlite";
import {
  type CommitPlan,
  type LoadedShop,
  planCommit,
  type ShopChanges,
  type Submission,
} from "../../domain/decide/commit.ts";
import { type CommitKeys, keysOf } from "../../domain/decide/commit-keys.ts";
import { subscriptionId, timeOrderedId } from "../../domain/ids.ts";
import type { IncomingRecord } from "../../domain/records/record-schemas.ts";
import { contractOrders } from "../engine/contract-orders.ts";
import { type StoredState, stateOf } from "../engine/shop-state.ts";
import { withSearches } from "../engine/text-searches.ts";
import { firstParts } from "../port/intake-bodies.ts";
import type { MirrorStore, TextSearch } from "../port/mirror.ts";
import { contractReads } from "./contract-reads.ts";
import { dataRequestInserter } from "./data-request-inserter.ts";
import { deliveryInserter } from "./delivery-inserter.ts";
import { mirrorRows } from "./rows.ts";
import { mentioningTexts } from "./texts.ts";

export function mirrorStore(db: Database, random: (bytes: number) => Uint8Array): MirrorStore {
  const rows = mirrorRows(db);
  const texts = mentioningTexts(db);
  const reads = contractReads(db);
  const insertDelivery = deliveryInserter(db);
  const insertDataRequest = dataRequestInserter(db);
  const shopState = db.prepare<StoredState, [number]>(
    `SELECT plan, url, topics, triggers, change_count AS changeCount, change_span AS spanNumber,
       change_count AS previousSpanCount,
       customer_count AS customers, subscription_count AS subscriptions, order_count AS orders,
       (SELECT max(version) FROM webhook_secrets WHERE shop_id = shops.id) AS secretVersion,
       EXISTS (SELECT 1 FROM connections WHERE shop_id = shops.id) AS isConnected
     FROM shops LEFT JOIN webhook_endpoints ON webhook_endpoints.shop_id = shops.id
     WHERE shops.id = +? AND removal_started_at IS NULL`,
  );
  const setCounts = db.prepare(
    `UPDATE shops SET change_count = ?, change_span = ?, customer_count = ?, subscription_count = ?, order_count = ?
     WHERE id = ?`,
  );
  // After `sds copy` the span can be there (copy/tables.ts).
  const noteSpan = db.prepare(
    `INSERT INTO change_spans (shop_id, span, number) VALUES (?, ?, ?)
     ON CONFLICT (shop_id, span) DO UPDATE SET number = min(number, excluded.number)`,
  );
  const intakeParts = db.prepare<{ number: number; records: string }, [number, number, number]>(
    "SELECT number, records FROM intake_parts WHERE shop_id = +? AND body = +? ORDER BY number LIMIT +?",
  );
  const removePart = db.prepare("DELETE FROM intake_parts WHERE shop_id = ? AND number = ?");
  const removeBody = db.prepare("DELETE FROM intake_bodies WHERE shop_id = ? AND number = ? AND complete = 1");
  const removeFromInbox = db.prepare("DELETE FROM inbox WHERE shop_id = ? AND number = ?");

  /** The result lacks shops that were removed, or whose removal began, since the caller looked them up. */
  function load(keys: readonly CommitKeys[], searches: readonly TextSearch[]): Map<number, LoadedShop> {
    const shops = new Map<number, LoadedShop>();
    for (const shopKeys of keys) {
      const { shop } = shopKeys;
      const stored = shopState.get(shop.id);
      if (stored === null) continue;
      const loaded = rows.load(shopKeys);
      loaded.texts = texts.read(searches.filter((search) => search.shop.id === shop.id));
      shops.set(shop.id, { keys: shopKeys, state: stateOf(stored), rows: loaded });
    }
    return shops;
  }

  function write(
    { shop, rows: changedRows, changeCount, spanNumber, counts, deliveries, inboxNumbers, ...more }: ShopChanges,
    now: number,
  ): void {
    for (const { row, changeNumber } of changedRows) rows.write(shop.id, row, changeNumber);
    if (changedRows.length > 0)
      setCounts.run(changeCount, spanNumber, counts.customers, counts.subscriptions, counts.orders, shop.id);
    if (more.countBeforeSpan !== null) noteSpan.run(shop.id, spanNumber, more.countBeforeSpan);
    for (const delivery of deliveries) insertDelivery(shop.id, delivery, now);
    for (const number of inboxNumbers) removeFromInbox.run(shop.id, number);
    for (const read of more.reads) reads.note(shop.id, read);
    for (const request of more.dataRequests) insertDataRequest(shop.id, request);
    for (const change of more.texts) texts.write(shop.id, change);
    for (const number of more.redactedDeliveries) texts.removeAnswers(shop.id, number);
  }

  /** Inside the caller's transaction. */
  function apply(submissions: readonly Submission[], searches: readonly TextSearch[], now: number): CommitPlan {
    const loaded = load(keysOf(submissions), searches);
    const plan = planCommit(submissions, loaded, now, () => timeOrderedId("whd_", now, random));
    for (const changes of plan.changes) write(changes, now);
    return plan;
  }

  /** Runs a transaction that applies records, and notes what it committed. */
  function commit<T extends { changes?: readonly ShopChanges[] | undefined }>(transaction: () => T): T {
    const committed = db.transaction(transaction).immediate();
    for (const changes of committed.changes ?? []) texts.noteCommit(changes);
    return committed;
  }

  return {
    searchTexts: (shop, people) => texts.search(shop, people),

    applyRecords(submissions, now, given = []) {
      return withSearches(submissions, given, texts.search, async (searches) => {
        return commit(() => apply(submissions, searches, now)).results;
      });
    },

    async applyIntakeParts({ number, shop }, limits, now) {
      return commit(() => {
        // The body goes with its shop.
        if (shopState.get(shop.id) === null) return {};
        const next = intakeParts.all(shop.id, number, limits.parts + 1);
        const parts = firstParts(next, limits);
        const records = parts.flatMap((part) => JSON.parse(part.records) as IncomingRecord[]);
        // A body has no redactions, so nothing has to be searched.
        const plan = parts.length === 0 ? undefined : apply([{ shop, records }], [], now);
        const result = plan?.results[0];
        // What was refused stays. The caller has to remove it.
        if (result !== undefined && "refused" in result) return { result };
        for (const part of parts) removePart.run(shop.id, part.number);
        if (parts.length === next.length) removeBody.run(shop.id, number);
        return { result, changes: plan?.changes };
      }).result;
    },

    async knownContracts(shop, contractGids) {
      const gids = new Map(contractGids.map((gid) => [subscriptionId(shop.domain, gid), gid]));
      return new Set(rows.contracts(shop.id, [...gids.keys()]).map((id) => gids.get(id) ?? ""));
    },

    async contractOf(shop, contractGid) {
      return rows.contract(shop.id, subscriptionId(shop.domain, contractGid));
    },

    async contractReads(shop, contractGids) {
      return reads.of(shop.id, contractGids);
    },

    async contractsOfOrder(shop, orderGid) {
      return reads.contractsOfOrder(shop.id, orderGid);
    },

    async ordersOf(shop, contractGid) {
      return contractOrders(shop.domain, contractGid, (ids) => rows.orders(shop.id, ids));
    },
  };
}
