import { describe, expect, test } from "bun:test";
import { findSubjects } from "../../src/actions/delivery-search.ts";
import type { Shop } from "../../src/domain/shop.ts";
import type { Delivery, DeliveryFilter } from "../../src/store/port/deliveries.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../support/records.ts";
import { claimOne, end, failed, queueRewards, record, succeeded } from "./delivery-fixtures.ts";
import { engines, storeWithEvents } from "./engines.ts";
import { commit, HOUR, shopWithEvents } from "./fixtures.ts";

/** Queues deliveries of every kind, topic and status, some hours apart. Contract 3 is of customer 1 too. */
async function fillLog(store: Store, shop: Shop): Promise<void> {
  await commit(store, shop, [subscription(1), subscription(2)]);
  await end(store, shop, "delivered");
  await commit(store, shop, [order(1, 1), order(2, 1, { status: "FAILED", shopifyId: null })], START + 2 * HOUR);
  await end(store, shop, "dead", START + 2 * HOUR);
  await commit(store, shop, [subscription(3, { customer: gid.customer(1) }), reward("r1")], START + 4 * HOUR);
  await end(store, shop, "retrying", START + 4 * HOUR);
  await commit(store, shop, [cancelFlow("c1"), order(1, 2), subscription(12)], START + 6 * HOUR);
}

/** Reads all pages from the newest to the oldest delivery, and then back. @returns the deliveries of each direction */
async function pageThrough(store: Store, shop: Shop, filter: DeliveryFilter): Promise<[Delivery[], Delivery[]]> {
  const [down, up]: [Delivery[], Delivery[]] = [[], []];
  let page = await store.deliveries.page(shop.id, filter);
  expect(page.newer).toBeNull();
  for (;;) {
    expect(page.deliveries.length).toBeLessThanOrEqual(filter.limit);
    down.push(...page.deliveries);
    if (page.older === null) break;
    page = await store.deliveries.page(shop.id, { ...filter, before: page.older });
  }
  up.unshift(...page.deliveries);
  for (let after = page.newer; after !== null; after = page.newer) {
    page = await store.deliveries.page(shop.id, { ...filter, after });
    up.unshift(...page.deliveries);
  }
  return [down, up];
}

const ids = (deliveries: readonly Delivery[]) => deliveries.map(({ id }) => id);

describe.each(engines())("$name: a search of the delivery log", (engine) => {
  test("finds what matches all filters, on pages of any size, forwards and back", async () => {
    const { store } = await engine.open();
    const [shop, other] = [await shopWithEvents(store), await shopWithEvents(store, "other")];
    await fillLog(store, shop);
    await fillLog(store, other);
    const all = await store.deliveries.list(shop.id, { limit: 100 });
    expect(all.length).toBeGreaterThan(12);
    const subjects = await findSubjects(store.pages, shop, "1");
    const contracts = [gid.contract(1), gid.contract(3)];
    for (const status of ["pending", "retrying", "delivered", "dead", undefined] as const) {
      for (const topic of ["order.charged", "subscription-created", undefined]) {
        for (const times of [{ from: START + HOUR }, { to: START + 3 * HOUR, from: START + 2 * HOUR }, {}]) {
          for (const about of [{ subjects }, {}]) {
            const filter = { ...(status && { status }), ...(topic !== undefined && { topic }), ...times, ...about };
            const { from = 0, to = Number.POSITIVE_INFINITY } = times;
            const wanted = all.filter(
              (each) =>
                (status === undefined || each.status === status) &&
                (topic === undefined || each.topic === topic) &&
                each.createdAt >= from &&
                each.createdAt < to &&
                (about.subjects === undefined ||
                  contracts.includes(each.subject.contract ?? "") ||
                  each.subject.contract === null),
            );
            for (const limit of [1, 2, 50]) {
              const [down, up] = await pageThrough(store, shop, { limit, ...filter });
              expect(ids(down)).toEqual(ids(wanted));
              expect(ids(up)).toEqual(ids(wanted));
            }
            const webhooks = wanted.filter(({ kind }) => kind === "webhook");
            expect(await store.deliveries.list(shop.id, { limit: 50, kind: "webhook", ...filter })).toEqual(webhooks);
          }
        }
      }
    }
  });

  test("finds contracts, orders and customers by gid, internal id and number", async () => {
    const { store, shop } = await storeWithEvents(engine);
    await fillLog(store, shop);
    const idOf = async (form: "subscriptions" | "orders", contract: number) => {
      const page = await store.pages.list(shop.id, form, 50, null);
      const rows = JSON.parse(`[${new TextDecoder().decode(page?.rows)}]`) as Record<string, string>[];
      const { id = "", contractId } = rows.find(({ shopifyId }) => shopifyId === gid.contract(contract)) ?? {};
      return form === "subscriptions" ? id : (contractId ?? "");
    };
    const search = async (typed: string) => {
      const subjects = await findSubjects(store.pages, shop, typed);
      const found = await store.deliveries.list(shop.id, { limit: 50, subjects });
      return found.map(({ topic }) => topic).sort();
    };
    const ofFirst = ["cancel_flow.completed", "order.charged", "order.charged"];
    const contract = [...ofFirst, "subscription-created", "subscription.created"];
    for (const typed of [gid.contract(1), await idOf("subscriptions", 1)])
      expect(await search(typed)).toEqual(contract);
    expect(await search(gid.contract(12))).toEqual(["subscription-created", "subscription.created"]);
    const [first] = await store.deliveries.list(shop.id, { limit: 1, topic: "cancel_flow.completed" });
    const ofCustomer = [
      ...ofFirst,
      "loyalty.reward_earned",
      "streak-milestone-reached",
      ...["subscription-created", "subscription-created", "subscription.created", "subscription.created"],
    ];
    for (const typed of [gid.customer(1), first?.subject.customer ?? "", "1", " #1 "])
      expect(await search(typed)).toEqual(ofCustomer.sort());
    for (const typed of [gid.order(1002), "1002"]) expect(await search(typed)).toEqual(["order.charged"]);
    const orders = JSON.parse(
      `[${new TextDecoder().decode((await store.pages.list(shop.id, "orders", 50, null))?.rows)}]`,
    ) as { id: string; shopifyId: string | null }[];
    const declined = orders.find(({ shopifyId }) => shopifyId === null);
    expect(await search(declined?.id ?? "")).toEqual(["order.failed"]);
    for (const typed of [gid.contract(9), gid.customer(9), gid.order(9), "0", "x", "", "sub_aaaaaaaaaaaaaaaaaaaaaaaa"])
      expect(await search(typed)).toEqual([]);
  });

  test("picks deliveries by their ids, with the time that the last attempt took", async () => {
    const { store, shop } = await storeWithEvents(engine);
    await fillLog(store, shop);
    const other = await shopWithEvents(store, "other");
    await fillLog(store, other);
    const all = await store.deliveries.list(shop.id, { limit: 100 });
    const [newest, second, oldest] = [all[0], all[1], all.at(-1)];
    const [foreign] = await store.deliveries.list(other.id, { limit: 1 });
    const wanted = [oldest, newest, second].map((each) => each?.id ?? "");
    expect(await store.deliveries.pick(shop.id, [...wanted, foreign?.id ?? "", "whd_x"])).toEqual(
      [newest, second, oldest].flatMap((each) => each ?? []),
    );
    expect(await store.deliveries.pick(shop.id, [])).toEqual([]);
    expect(newest?.lastDuration).toBeNull();
    const retrying = all.find(({ status }) => status === "retrying");
    expect(retrying?.lastDuration).toBe(7);
    await end(store, shop, "delivered", START + 20 * HOUR);
    expect((await store.deliveries.pick(shop.id, [retrying?.id ?? ""]))[0]).toMatchObject({
      attempts: 2,
      lastDuration: 5,
    });
  });

  test("shows what each delivery is about", async () => {
    const { store, shop } = await storeWithEvents(engine);
    await fillLog(store, shop);
    await commit(store, shop, [reward("r2", { note: '"contract_id":"gid://shopify/SubscriptionContract/2"' })]);
    const id = expect.stringMatching(/^cus_[a-z2-7]{24}$/) as string;
    const about = async (topic: string) => (await store.deliveries.list(shop.id, { limit: 1, topic }))[0]?.subject;
    const none = { contract: null, customer: null, order: null, cycle: null };
    expect(await about("subscription.created")).toEqual({ ...none, contract: gid.contract(12), customer: id });
    expect(await about("subscription-created")).toEqual({ ...none, contract: gid.contract(12) });
    expect(await about("order.charged")).toEqual({
      contract: gid.contract(1),
      customer: id,
      order: gid.order(1002),
      cycle: 2,
    });
    expect(await about("order.failed")).toEqual({ ...none, contract: gid.contract(2), customer: id, cycle: 1 });
    expect(await about("loyalty.reward_earned")).toEqual({ ...none, customer: id });
    expect(await about("streak-milestone-reached")).toEqual(none);
    const [newest] = await store.deliveries.list(shop.id, { limit: 1 });
    expect((await store.deliveries.show(shop.id, newest?.id ?? "")).subject).toEqual(newest?.subject ?? none);
  });

  test("looks at 5,000 deliveries for a page, and goes on behind them", async () => {
    const { store, shop } = await storeWithEvents(engine);
    await commit(store, shop, [subscription(1)]);
    await queueRewards(
      store,
      shop,
      Array.from({ length: 5_100 }, (_, n) => n),
      START + 1,
    );
    const filter = { limit: 5, kind: "webhook" as const, topic: "subscription.created" };
    const { deliveries, older } = await store.deliveries.page(shop.id, filter);
    expect(deliveries).toEqual([]);
    const next = await store.deliveries.page(shop.id, { ...filter, before: older ?? "" });
    expect(next).toMatchObject({ deliveries: [{ topic: "subscription.created" }], older: null });
    expect(await store.deliveries.list(shop.id, filter)).toEqual(next.deliveries);
    // More than 5,000 deliveries wait, so they are not all read.
    const waiting = await store.deliveries.page(shop.id, { ...filter, status: "pending" });
    expect(waiting).toEqual({ deliveries: [], older, newer: null });
    expect(await store.deliveries.page(shop.id, { ...filter, before: "whd_unknown" })).toEqual({
      deliveries: [],
      older,
      newer: null,
    });
  });
});

describe.each(engines())("$name: the counts of attempts", (engine) => {
  const DAY = 24 * HOUR;
  const today = START - (START % DAY);

  test("have a row for each day, kind and outcome, of the transaction that recorded the attempts", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    const other = await shopWithEvents(store, "other");
    await queueRewards(store, shop, [1, 2, 3]);
    await queueRewards(store, other, [1]);
    await end(store, other, "delivered");
    const [first, second, third] = [
      await claimOne(store, shop),
      await claimOne(store, shop),
      await claimOne(store, shop),
    ];
    await record(store, [succeeded(first, START + 5), failed(second, START + 3), succeeded(third, START + 1)]);
    const again = await claimOne(store, shop, { now: START + DAY });
    await record(store, [failed(again, START + DAY)], []);
    // The first result ended the lease, so this second result of the attempt is not counted.
    await record(store, [succeeded(again, START + DAY)]);
    const counts = [
      { kind: "webhook", day: today, outcome: "delivered", attempts: 2 },
      { kind: "webhook", day: today, outcome: "retried", attempts: 1 },
      { kind: "webhook", day: today + DAY, outcome: "dead", attempts: 1 },
    ] as const;
    const { deliveries } = store;
    expect(await deliveries.countsByDay(shop.id, START)).toEqual([...counts]);
    expect(await deliveries.countsByDay(shop.id, START + DAY)).toEqual([counts[2]]);
    expect(await deliveries.lastOutcomes(shop.id, "webhook")).toEqual({
      succeededAt: START + 5,
      failedAt: START + DAY,
    });
    expect(await deliveries.lastOutcomes(shop.id, "trigger")).toEqual({ succeededAt: null, failedAt: null });
    await deliveries.prune(0, today + DAY);
    expect((await rows("delivery_counts")).map(({ outcome }) => outcome)).toEqual(["dead"]);
  });

  test("are the same from recorded attempts as from stored ones", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await fillLog(store, shop);
    const attempts = await rows("attempts");
    const counted = (await store.deliveries.countsByDay(shop.id, 0)).reduce((sum, each) => sum + each.attempts, 0);
    expect(counted).toBe(attempts.length);
  });

  test("give success rate and percentiles of the last attempts", async () => {
    const { store, shop } = await storeWithEvents(engine);
    const figures = (since: number) => store.deliveries.recentAttempts(shop.id, "webhook", since);
    const none = { attempts: 0, succeeded: 0, medianMs: null, percentile95Ms: null, isPart: false };
    expect(await figures(0)).toEqual(none);
    await commit(store, shop, [customer(1)]);
    await queueRewards(
      store,
      shop,
      Array.from({ length: 20 }, (_, n) => n),
    );
    for (let n = 1; n <= 20; n += 1) {
      const claimed = await claimOne(store, shop);
      const result = n > 15 ? failed(claimed, START + n) : succeeded(claimed, START + n);
      await record(store, [{ ...result, duration: n }]);
    }
    const all = { attempts: 20, succeeded: 15, medianMs: 10, percentile95Ms: 19, isPart: false };
    expect(await figures(START)).toEqual(all);
    expect(await figures(START + 20)).toEqual({ ...all, attempts: 1, succeeded: 0, medianMs: 20, percentile95Ms: 20 });
    expect(await store.deliveries.countDelivered(shop.id, 0, 99)).toBe(15);
    expect(await store.deliveries.countDelivered(shop.id, START + 22, 99)).toBe(5);
    expect(await store.deliveries.countDelivered(shop.id, 0, 14)).toBe(14);
    await queueRewards(
      store,
      shop,
      Array.from({ length: 990 }, (_, n) => `more${n}`),
      START + 1,
    );
    expect(await figures(START)).toMatchObject({ attempts: 10, isPart: true });
    expect(await figures(START + 2)).toMatchObject({ isPart: false });
  });
});
