import { describe, expect, test } from "bun:test";
import type { DeliveryKind, DeliveryStatus } from "../../src/domain/deliveries/delivery.ts";
import type { Claim } from "../../src/store/port/deliveries.ts";
import { START } from "../support/app.ts";
import { claim, end, fill, LEASE, notFound, queueRewards, record, succeeded } from "./delivery-fixtures.ts";
import { engines, storeWithEvents } from "./engines.ts";
import { failures, HOUR, shopWithEvents, URL } from "./fixtures.ts";

describe.each(engines())("$name: the delivery log", (engine) => {
  test("is newest first, and is filtered by kind and status", async () => {
    const { store } = await engine.open();
    const [shop, other] = [await shopWithEvents(store), await shopWithEvents(store, "other")];
    await fill(store, shop);
    await fill(store, other);
    const listed = async (filter: { limit?: number; status?: DeliveryStatus; kind?: DeliveryKind }) =>
      (await store.deliveries.list(shop.id, { limit: 20, ...filter })).map(({ kind, status }) => `${status} ${kind}`);
    const newestFirst = ["pending", "retrying", "dead", "delivered"] as const;
    expect(await listed({})).toEqual(newestFirst.flatMap((status) => [`${status} trigger`, `${status} webhook`]));
    expect(await listed({ limit: 3 })).toEqual(["pending trigger", "pending webhook", "retrying trigger"]);
    for (const kind of ["webhook", "trigger"] as const) {
      expect(await listed({ kind })).toEqual(newestFirst.map((status) => `${status} ${kind}`));
      for (const status of newestFirst) expect(await listed({ kind, status })).toEqual([`${status} ${kind}`]);
    }
    for (const status of newestFirst)
      expect(await listed({ status })).toEqual([`${status} trigger`, `${status} webhook`]);
    for (const status of newestFirst) expect(await listed({ status, limit: 1 })).toEqual([`${status} trigger`]);
    expect(await listed({ limit: 0 })).toEqual([]);
    expect(await store.deliveries.countWaiting(shop.id)).toEqual({ pending: 2, retrying: 2 });
    const { pending, retrying } = await store.deliveries.countWaiting(shop.id, 3);
    expect(pending + retrying).toBe(3);
  });

  test("has all details of each delivery", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await fill(store, shop);
    const [, , , , , dead] = await store.deliveries.list(shop.id, { limit: 20 });
    const row = (await rows("deliveries")).find(({ id }) => id === dead?.id);
    const known = {
      id: String(row?.["id"]),
      kind: "webhook" as const,
      topic: "subscription.created",
      test: false,
      status: "dead" as const,
      attempts: 1,
      nextAttemptAt: null,
      lastStatusCode: 500,
      lastDuration: 7,
      error: "The endpoint responded with HTTP 500.",
      createdAt: START + 1,
      subject: {
        contract: "gid://shopify/SubscriptionContract/2",
        customer: expect.stringMatching(/^cus_/) as string,
        order: null,
        cycle: null,
      },
    };
    expect(dead).toEqual(known);
    const ended = { duration: 7, statusCode: 500, error: known.error, url: URL, answer: "no" };
    const history = [{ number: 1, startedAt: START + 1, ...ended }];
    expect(await store.deliveries.show(shop.id, known.id)).toEqual({
      ...known,
      body: String(row?.["body"]),
      secretVersion: 1,
      history,
    });
    expect((await store.deliveries.list(shop.id, { limit: 3 })).map(({ nextAttemptAt }) => nextAttemptAt)).toEqual([
      START + 3,
      START + 3,
      START + 2 + HOUR,
    ]);
  });

  test("does not show another shop's delivery or an unknown delivery", async () => {
    const { store, rows } = await engine.open();
    const [shop, other] = [await shopWithEvents(store), await shopWithEvents(store, "other")];
    for (const each of [shop, other]) {
      await queueRewards(store, each, [1]);
      await end(store, each, "dead");
    }
    const before = await rows("deliveries");
    const id = (await store.deliveries.list(shop.id, { limit: 1 }))[0]?.id ?? "";
    const { deliveries } = store;
    const calls = [
      deliveries.show(other.id, id),
      deliveries.show(shop.id, "whd_no"),
      deliveries.retry(other.id, id, START),
      deliveries.retry(shop.id, "whd_no", START),
    ];
    expect(await failures(calls)).toMatchObject(
      [id, "whd_no", id, "whd_no"].map((each) => ({ ...notFound, message: `there is no delivery ${each}` })),
    );
    expect(await rows("deliveries")).toEqual(before);
  });
});

describe.each(engines())("$name: retrying a delivery by hand", (engine) => {
  test.each(["dead", "delivered"] as const)("that is %s begins a new round, and the count goes on", async (how) => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1]);
    const [claimed] = await end(store, shop, how);
    const retried = await store.deliveries.retry(shop.id, claimed?.id ?? "", START + 50);
    expect(retried).toMatchObject({ id: claimed?.id, status: "pending", attempts: 1, nextAttemptAt: START + 50 });
    expect((await rows("deliveries"))[0]).toMatchObject({
      round: 0,
      claimable_at: START + 50,
      lease: null,
      ended_at: null,
    });
    expect(await claim(store, shop, { now: START + 49 })).toEqual([]);
    const [again] = await claim(store, shop, { now: START + 50 });
    expect({ ...again, lease: "" }).toEqual({ ...claimed, attempts: 1, lease: "" } as Claim);
  });

  test("that is retrying replaces the planned attempt, in the same round", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1]);
    const [claimed] = await end(store, shop, "retrying");
    expect(await store.deliveries.retry(shop.id, claimed?.id ?? "", START + 50)).toMatchObject({
      status: "retrying",
      attempts: 1,
      nextAttemptAt: START + 50,
    });
    expect((await rows("deliveries"))[0]).toMatchObject({ round: 1, claimable_at: START + 50 });
  });

  test("is refused while an attempt is under way, and possible when its lease is over", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1]);
    const [claimed] = await claim(store, shop);
    const before = await rows("deliveries");
    const id = claimed?.id ?? "";
    const [refused] = await failures([store.deliveries.retry(shop.id, id, START + LEASE - 1)]);
    expect(refused).toMatchObject({ name: "SdsError", code: "conflict", message: `an attempt of ${id} is under way` });
    expect(await rows("deliveries")).toEqual(before);
    const retried = { status: "pending", attempts: 0, nextAttemptAt: START + LEASE };
    expect(await store.deliveries.retry(shop.id, id, START + LEASE)).toMatchObject(retried);
    // The result of the first attempt arrives after its lease expired, so it is ignored.
    if (claimed !== undefined) await record(store, [succeeded(claimed)]);
    expect(await store.deliveries.show(shop.id, id)).toMatchObject(retried);
  });

  test("changes no other delivery", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1, 2]);
    const [claimed, other] = await end(store, shop, "dead");
    const others = async () => (await rows("deliveries")).filter(({ id }) => id === other?.id);
    const before = await others();
    await store.deliveries.retry(shop.id, claimed?.id ?? "", START + 50);
    expect(await others()).toEqual(before);
  });
});
