import type { Database } from "bun:sqlite";
import { type LoadedShop, planCommit, type ShopChanges, type ShopState } from "../../domain/commit.ts";
import { type CommitKeys, keysOf } from "../../domain/commit-keys.ts";
import type { Topic } from "../../domain/event.ts";
import { subscriptionId, timeOrderedId } from "../../domain/ids.ts";
import type { Order } from "../../domain/resources.ts";
import type { Plan } from "../../domain/shop.ts";
import type { TriggerHandle } from "../../domain/trigger.ts";
import { mayHaveOrders, orderIdsOf } from "../contract-orders.ts";
import type { MirrorStore } from "../mirror.ts";
import { deliveryInserter } from "./delivery-inserter.ts";
import { mirrorRows } from "./rows.ts";
import { type FoundTexts, mentioningTexts } from "./texts.ts";

interface StoredShop {
  plan: Plan;
  url: string | null;
  topics: string | null;
  triggers: string;
  secretVersion: number | null;
  isConnected: number;
  changeCount: number;
  customers: number;
  subscriptions: number;
  orders: number;
}

export function mirrorStore(db: Database, random: (bytes: number) => Uint8Array): MirrorStore {
  const rows = mirrorRows(db);
  const texts = mentioningTexts(db);
  const insertDelivery = deliveryInserter(db);
  const shopState = db.prepare<StoredShop, [number]>(
    `SELECT plan, url, topics, triggers, change_count AS changeCount,
       customer_count AS customers, subscription_count AS subscriptions, order_count AS orders,
       (SELECT max(version) FROM webhook_secrets WHERE shop_id = shops.id) AS secretVersion,
       EXISTS (SELECT 1 FROM connections WHERE shop_id = shops.id) AS isConnected
     FROM shops LEFT JOIN webhook_endpoints ON webhook_endpoints.shop_id = shops.id WHERE shops.id = +? AND removal_started_at IS NULL`,
  );
  const setCounts = db.prepare(
    "UPDATE shops SET change_count = ?, customer_count = ?, subscription_count = ?, order_count = ? WHERE id = ?",
  );
  const removeFromInbox = db.prepare("DELETE FROM inbox WHERE shop_id = ? AND number = ?");

  /** The result lacks shops that were removed, or whose removal began, since the caller looked them up. */
  function load(keys: readonly CommitKeys[], found: ReadonlyMap<CommitKeys, FoundTexts>): Map<number, LoadedShop> {
    const shops = new Map<number, LoadedShop>();
    for (const shopKeys of keys) {
      const { shop } = shopKeys;
      const stored = shopState.get(shop.id);
      if (stored === null) continue;
      const loaded = rows.load(shopKeys);
      loaded.texts = found.get(shopKeys)?.read() ?? [];
      shops.set(shop.id, { keys: shopKeys, state: stateOf(stored), rows: loaded });
    }
    return shops;
  }

  function write(
    { shop, rows: changedRows, changeCount, counts, deliveries, inboxNumbers, texts: changedTexts }: ShopChanges,
    now: number,
  ): void {
    for (const { row, changeNumber } of changedRows) rows.write(shop.id, row, changeNumber);
    if (changedRows.some(({ row }) => row.kind === "occurrence")) texts.noteRewards();
    if (changedRows.length > 0)
      setCounts.run(changeCount, counts.customers, counts.subscriptions, counts.orders, shop.id);
    for (const delivery of deliveries) insertDelivery(shop.id, delivery, now);
    for (const number of inboxNumbers) removeFromInbox.run(shop.id, number);
    for (const change of changedTexts) texts.write(shop.id, change);
  }

  return {
    async applyRecords(submissions, now) {
      const keys = keysOf(submissions);
      const found = new Map<CommitKeys, FoundTexts>();
      for (const shopKeys of keys) {
        const { shop, redactedPeople } = shopKeys;
        // Searched before the transaction, because it takes long in a large shop, and others can work meanwhile.
        if (redactedPeople.size > 0) found.set(shopKeys, await texts.search(shop, redactedPeople));
      }
      return db
        .transaction(() => {
          const plan = planCommit(submissions, load(keys, found), now, () => timeOrderedId("whd_", now, random));
          for (const changes of plan.changes) write(changes, now);
          return plan.results;
        })
        .immediate();
    },

    async customerGidOf(shop, contractGid) {
      return rows.customerGidOf(shop.id, subscriptionId(shop.domain, contractGid));
    },

    async ordersOf(shop, contractGid) {
      const orders = new Map<number, Order>();
      let end = 0;
      do {
        const range = orderIdsOf(shop.domain, contractGid, end);
        for (const order of rows.orders(shop.id, [...range.ids.keys()])) orders.set(order.cycleNumber, order);
        end = range.end;
      } while (mayHaveOrders(orders, end));
      return orders;
    },
  };
}

function stateOf({
  plan,
  url,
  topics,
  triggers,
  secretVersion,
  isConnected,
  changeCount,
  ...counts
}: StoredShop): ShopState {
  return {
    plan,
    url,
    topics: topics === null ? [] : (JSON.parse(topics) as Topic[]),
    secretVersion,
    triggers: JSON.parse(triggers) as TriggerHandle[],
    isConnected: isConnected === 1,
    changeCount,
    counts,
  };
}
