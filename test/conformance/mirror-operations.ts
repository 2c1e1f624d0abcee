import { customerId, subscriptionId } from "../../src/domain/ids.ts";
import type { RowFilter } from "../../src/domain/pages/row-filter.ts";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { NO_COUNTS } from "../../src/domain/platform/sync.ts";
import { RESOURCES, type Resource } from "../../src/domain/resources.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { ROW_FORMS, resourceOf } from "../../src/store/port/pages.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import {
  billingCycle,
  cancelFlow,
  customer,
  fieldValue,
  gid,
  order,
  reward,
  subscription,
} from "../support/records.ts";
import { commit, receipt, receiveAll } from "./fixtures.ts";

/** Calls the operations that write the mirror or read its rows, and the operations of loads. */
export async function mirror(store: Store, shop: Shop): Promise<void> {
  await receiveAll(store, [receipt(shop, "settled"), receipt(shop, "kept", { body: '{"customer":{"id":1}}' })]);
  const [kept, settled] = await store.inbox.list(shop.id, { limit: 2 });
  const records = [
    customer(1),
    subscription(1),
    order(1, 1),
    billingCycle(1, 2, ["card_declined@1"]),
    reward("r", { email: "a@example.com" }),
    cancelFlow("c"),
    fieldValue(1, "note", "x"),
  ];
  const reads = [
    { contract: gid.contract(1), beganAt: START, updatedAt: START, orders: new Map([[gid.order(1), START]]) },
  ];
  const dataRequests = [dataRequest("1", gid.customer(1), START)];
  const inboxNumbers = [settled?.number ?? 0];
  await store.mirror.applyRecords([{ shop, records, reads, dataRequests, inboxNumbers }], START, []);
  await Promise.all([store.dataRequests.open(shop.id), store.dataRequests.dueBefore(START)]);
  await store.dataRequests.answer(shop.id, gid.customer(1), START);
  await store.dataRequests.forgetAnswered(START);
  await store.fields.valuesOf(shop.id, subscriptionId(shop.domain, gid.contract(1)));
  await store.people.export(shop, gid.customer(1));
  await store.history.unsentEvents(shop.id, [{ subject: "1" }], START);
  await store.history.redactedAt(shop.id, customerId(shop.domain, gid.customer(1)));
  for (const resource of RESOURCES) await store.history.lastChange(shop.id, resource, "none", START);
  await commit(store, shop, [{ type: "redaction", shopifyId: gid.customer(1), asOf: START }]);
  (await store.mirror.searchTexts(shop, new Set([gid.customer(1)]))).end();
  await store.inbox.read(shop.id, [kept?.number ?? 0]);
  await Promise.all([
    store.mirror.ordersOf(shop, gid.contract(1)),
    store.mirror.contractOf(shop, gid.contract(1)),
    store.mirror.contractReads(shop, [gid.contract(1)]),
    store.mirror.contractsOfOrder(shop, gid.order(1)),
    store.mirror.newestRate(shop, "JPY/USD"),
    store.mirror.contractsWithoutRate(shop, "", 1),
    store.shops.rowCounts(shop.id),
  ]);
  for (const form of ROW_FORMS) {
    const page = await store.pages.list(shop.id, form, 1, null);
    if (page?.end) await store.pages.list(shop.id, form, 1, page.end);
    await store.pagesFor({ changeCount: 0, branch: "" }).list(shop.id, form, 1, null);
    await store.pages.changes(shop.id, form, {}, 1, 0);
    await store.pages.find(shop.id, form, { id: page?.end?.id ?? "" });
    for (const filter of [{}, ...filtersOf(resourceOf(form))]) {
      await store.pages.listFiltered(shop.id, form, filter, 1, null);
      await store.pages.listFiltered(shop.id, form, filter, 1, page?.end ?? null);
    }
  }
  await store.pages.find(shop.id, "orders", { orderGid: gid.order(1) });
  await store.pages.changeBefore(shop.id, START);
  await stageOrders(store, shop);
  await store.syncs.save(shop.id, "full", {
    startedAt: START,
    events: false,
    stage: "orders",
    cursor: null,
    counts: NO_COUNTS,
  });
  await store.syncs.complete(shop.id, "full", START, 1, START);
  await Promise.all([store.syncs.unfinished(shop.id, "full"), store.syncs.lastComplete(shop.id, "full")]);
  await store.syncs.unloaded();
  await store.syncs.claimLoad(shop.id, { holder: "a", now: START, until: START + 1 });
  await store.syncs.keepLoad(shop.id, "a", START + 1, {});
  await store.syncs.releaseLoad(shop.id, "a", {});
  await store.syncs.loadState(shop.id, START);
}

/** Makes a filter for each way to find rows of a resource. */
function filtersOf(resource: Resource): RowFilter[] {
  const customers: RowFilter[] = [{ id: "cus_a" }];
  const subscriptions: RowFilter[] = [...customers, { customerId: "cus_a" }, { statuses: ["ACTIVE"] }];
  const orders: RowFilter[] = [...subscriptions, { contractId: "sub_a" }, { orderGid: gid.order(1) }];
  return { customers, subscriptions, orders }[resource];
}

async function stageOrders({ orderStages }: Store, { id }: Shop): Promise<void> {
  const stage = (await orderStages.begin(id)) ?? 0;
  const line = { orderGid: gid.order(1), gid: "gid://shopify/LineItem/1", json: "{}" };
  await orderStages.add(id, stage, [{ gid: gid.order(1), json: "{}" }], [line]);
  await orderStages.complete(id, stage);
  await orderStages.find(id, gid.order(1));
  await orderStages.remove(id, stage);
}
