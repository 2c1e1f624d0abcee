import { describe, expect, test } from "bun:test";
import { type DeliveryDecision, explainDeliveries } from "../../src/actions/delivery-decisions.ts";
import { customerId, orderId } from "../../src/domain/ids.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import type { Plan, Shop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../support/records.ts";
import { applySearched } from "../support/searched.ts";
import { end } from "./delivery-fixtures.ts";
import { engines, storeWithTwoShops } from "./engines.ts";
import { addShop, commit, HOUR, removeShop, shopWithEvents, URL } from "./fixtures.ts";

const DAY = 24 * HOUR;

/** Lists the newest deliveries about `typed`, and why other events of the last 30 days were not sent. */
const explain = (store: Store, shop: Shop, typed: string, now = START) =>
  explainDeliveries(store, shop, typed, now - 30 * DAY);

const short = (decisions: readonly DeliveryDecision[]) =>
  decisions.map(({ topic, decision, delivery }) => `${topic} ${decision}${delivery === null ? "" : " whd"}`);

/** Commits records without queueing the events that are older than `eventsSince`. */
const commitQuietly = (store: Store, shop: Shop, records: MirrorRecord[], eventsSince = Number.POSITIVE_INFINITY) =>
  applySearched(store.mirror, [{ shop, records, eventsSince }], START);

describe.each(engines())("$name: the reason why something was sent or not", (engine) => {
  test("is the status of each delivery, oldest first, with the last error of a dead one", async () => {
    const { store } = await engine.open();
    const shop = await shopWithEvents(store);
    await commit(store, shop, [subscription(1)]);
    await end(store, shop, "delivered");
    await commit(store, shop, [order(1, 1, { status: "FAILED", shopifyId: null })], START + HOUR);
    await end(store, shop, "dead", START + HOUR);
    await commit(store, shop, [cancelFlow("c")], START + 2 * HOUR);
    const decisions = await explain(store, shop, gid.contract(1), START + 2 * HOUR);
    expect(short(decisions)).toEqual([
      "subscription.created delivered whd",
      "subscription-created delivered whd",
      "order.failed dead whd",
      "billing-attempt-failed dead whd",
      "cancel_flow.completed pending whd",
      "null nothing_changed",
    ]);
    expect(decisions.map(({ at }) => at).slice(0, 5)).toEqual([0, 0, 1, 1, 2].map((hours) => START + hours * HOUR));
    expect(decisions[2]?.error).toBeString();
    expect(decisions[0]?.error).toBeNull();
    expect(decisions[0]?.delivery).toStartWith("whd_");
  });

  test.each<[string, { plan?: Plan; url?: null; topics?: [] }]>([
    ["plan_without_access", { plan: "free" }],
    ["no_endpoint", { url: null }],
    ["topic_not_chosen", { topics: [] }],
  ])("is %s for each event of such a shop, and stays after the shop is set right", async (reason, settings) => {
    const { store } = await engine.open();
    const shop = await addShop(store);
    await store.shops.set(shop.domain, { plan: settings.plan ?? "pro" });
    const endpoint = { url: URL, topics: settings.topics ?? ["order.failed" as const] };
    if (settings.url !== null) await store.webhooks.set(shop.id, endpoint, START);
    await commit(store, shop, [subscription(1), order(1, 1), reward("r"), cancelFlow("c")]);
    await store.shops.set(shop.domain, { plan: "pro" });
    await store.webhooks.set(shop.id, { url: URL, topics: ["order.charged"] }, START);
    const ofContract = ["cancel_flow.completed", "order.charged", "subscription.created"];
    const last = "null nothing_changed";
    expect(short(await explain(store, shop, gid.contract(1)))).toEqual([
      ...ofContract.map((topic) => `${topic} ${reason}`),
      last,
    ]);
    for (const typed of [order(1, 1).shopifyId ?? "", orderId(shop.domain, gid.contract(1), "recurring", 1)])
      expect(short(await explain(store, shop, typed))).toEqual([`order.charged ${reason}`, last]);
    expect(short(await explain(store, shop, gid.customer(1)))).toEqual([
      ...["cancel_flow.completed", "loyalty.reward_earned", "order.charged", "subscription.created"].map(
        (topic) => `${topic} ${reason}`,
      ),
      last,
    ]);
  });

  test("is told once if a number names a customer, its contract and an order", async () => {
    const { store } = await engine.open();
    const shop = await addShop(store);
    await commit(store, shop, [subscription(1), order(1, 1, { shopifyId: "gid://shopify/Order/1" })]);
    expect(short(await explain(store, shop, "1"))).toEqual([
      "order.charged no_endpoint",
      "subscription.created no_endpoint",
      "null nothing_changed",
    ]);
  });

  test("names a workflow trigger that is off, in a shop that uses workflows", async () => {
    const { store } = await engine.open();
    const shop = await shopWithEvents(store);
    await store.shops.set(shop.domain, { triggers: ["subscription-cancelled"] });
    await commit(store, shop, [subscription(1)]);
    expect(short(await explain(store, shop, gid.contract(1)))).toContain("subscription-created topic_not_chosen");
    await store.shops.set(shop.domain, { triggers: [] });
    await commit(store, shop, [subscription(2)]);
    expect(short(await explain(store, shop, gid.contract(2)))).toEqual([
      "subscription.created pending whd",
      "null nothing_changed",
    ]);
  });

  test("is quiet for a quiet import, and for events before the connection", async () => {
    const { store } = await engine.open();
    const shop = await shopWithEvents(store);
    await commitQuietly(store, shop, [subscription(1)]);
    await commitQuietly(store, shop, [subscription(2), order(2, 1)], START);
    expect(short(await explain(store, shop, gid.contract(1)))).toEqual([
      "subscription.created quiet",
      "null nothing_changed",
    ]);
    expect(short(await explain(store, shop, gid.contract(2)))).toEqual([
      "order.charged pending whd",
      "subscription.created quiet",
      "null nothing_changed",
    ]);
  });

  test("of records that change nothing is only the time of the last change, and they write nothing", async () => {
    const { store } = await engine.open();
    const shop = await shopWithEvents(store);
    const record = subscription(1, { revision: "2" });
    await commit(store, shop, [record]);
    const before = await explain(store, shop, gid.contract(1));
    for (const again of [record, subscription(1, { revision: "1", status: "PAUSED" })])
      await commit(store, shop, [again], START + HOUR);
    expect(await explain(store, shop, gid.contract(1))).toEqual(before);
    const last = before.at(-1);
    expect(last?.decision).toBe("nothing_changed");
    expect(START - (last?.at ?? 0)).toBeWithin(0, 30_000);
  });

  test("tells of a change that has no topic", async () => {
    const { store } = await engine.open();
    const shop = await shopWithEvents(store);
    await commit(store, shop, [subscription(1)]);
    await commit(store, shop, [subscription(1, { intervalCount: 2 })], START + HOUR);
    expect(short(await explain(store, shop, gid.contract(1))).slice(-2)).toEqual([
      "null no_topic",
      "null nothing_changed",
    ]);
    await commit(store, shop, [cancelFlow("c")], START + 2 * HOUR);
    expect(short(await explain(store, shop, gid.contract(1))).slice(-3)).toEqual([
      "cancel_flow.completed pending whd",
      "null no_topic",
      "null nothing_changed",
    ]);
  });

  test("gives the last change the time of the event that came with it", async () => {
    const { store } = await engine.open();
    const shop = await shopWithEvents(store);
    const middleOfSpan = START + 10_000;
    await commit(store, shop, [subscription(1)], middleOfSpan);
    expect((await explain(store, shop, gid.contract(1))).at(-1)).toMatchObject({
      decision: "nothing_changed",
      at: middleOfSpan,
    });
  });

  test("tells of a redaction, for the customer and the contracts", async () => {
    const { store } = await engine.open();
    const shop = await shopWithEvents(store);
    await commit(store, shop, [subscription(1), subscription(2)]);
    await commit(store, shop, [{ type: "redaction", shopifyId: gid.customer(1), asOf: START + HOUR, contacts: {} }]);
    for (const typed of [gid.customer(1), gid.contract(1)])
      expect(short(await explain(store, shop, typed))).toContain("null redacted");
    expect(short(await explain(store, shop, gid.contract(2)))).not.toContain("null redacted");
  });

  test("ends with old deliveries: then it is only told that the last change is older", async () => {
    const { store } = await engine.open();
    const [shop, quiet] = [await shopWithEvents(store), await addShop(store, "quiet")];
    for (const each of [shop, quiet]) await commit(store, each, [subscription(1)]);
    await end(store, shop, "delivered");
    const entries = () => store.history.unsentEvents(quiet.id, [{ subject: "1" }], 0);
    await store.deliveries.prune(START + 1, 0);
    expect(await entries()).toHaveLength(1);
    await store.deliveries.prune(START + DAY, 0);
    expect(await entries()).toEqual([]);
    for (const each of [shop, quiet])
      expect(await explain(store, each, gid.contract(1), START + 31 * DAY)).toEqual([
        { at: null, topic: null, decision: "pruned", delivery: null, error: null },
      ]);
  });

  test("keeps the last event of each day, topic and renewal, on many days", async () => {
    const { store } = await engine.open();
    const shop = await addShop(store);
    await commit(store, shop, [subscription(1)]);
    const dates = ["2026-05-01", "2026-05-02", "2026-05-03"].map((day) => `${day}T00:00:00.000Z`);
    for (const [index, nextBillingDate] of dates.entries())
      await commit(store, shop, [subscription(1, { nextBillingDate })], START + Math.ceil(index / 2) * DAY + index);
    const found = await store.history.unsentEvents(shop.id, [{ subject: "1" }], START - DAY);
    expect(found.map(({ topic, at }) => [topic, at])).toEqual([
      ["subscription.created", START],
      ["subscription.updated", START],
      ["subscription.updated", START + DAY + 2],
    ]);
    const since = await store.history.unsentEvents(shop.id, [{ subject: "1" }], START + 1);
    expect(since.map(({ at }) => at)).toEqual([START + DAY + 2]);
  });

  test("shows nothing of another shop, and goes with its shop", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    await commit(store, shop, [subscription(1), customer(7)]);
    await expect(explain(store, other, gid.contract(1))).rejects.toMatchObject({ code: "not_found" });
    await expect(explain(store, other, customerId(shop.domain, gid.customer(7)))).rejects.toMatchObject({
      code: "not_found",
    });
    await removeShop(store, shop.domain);
    expect(await store.history.unsentEvents(shop.id, [{ subject: "1" }], 0)).toEqual([]);
  });

  test.each(["", "gid://shopify/Product/1", "subscription", "1.5", "gid://shopify/Order/0"])(
    "refuses %p, which is no id",
    async (typed) => {
      const { store } = await engine.open();
      const shop = await addShop(store);
      await expect(explain(store, shop, typed)).rejects.toMatchObject({ code: "invalid" });
    },
  );
});
