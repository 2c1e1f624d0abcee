import { describe, expect, test } from "bun:test";
import type { DeliveryKind, DeliveryStatus } from "../../src/domain/delivery.ts";
import type { Event } from "../../src/domain/event.ts";
import type { ShopRef } from "../../src/domain/shop.ts";
import type { Claim } from "../../src/store/deliveries.ts";
import type { Store } from "../../src/store/store.ts";
import { StoreError } from "../../src/store/store-error.ts";
import { START } from "../support/app.ts";
import { reward, subscription } from "../support/records.ts";
import { engines } from "./engines.ts";
import {
  addShop,
  chooseAllEvents,
  claim,
  commit,
  failed,
  failures,
  HOUR,
  LEASE,
  queueRewards,
  record,
  removeShop,
  succeeded,
  URL,
} from "./fixtures.ts";

const event: Event = { topic: "order.charged", data: { cents: 5 } };
const notFound = { name: "SdsError", code: "not_found" };

async function shopWithEvents(store: Store, name?: string): Promise<ShopRef> {
  const shop = await addShop(store, name);
  await chooseAllEvents(store, shop);
  return shop;
}

/** Claims the due deliveries and ends them: dead, delivered, or retried in an hour. */
async function end(
  store: Store,
  shop: ShopRef,
  how: "dead" | "delivered" | "retrying",
  now = START,
  share = 10_000,
): Promise<Claim[]> {
  const claims = await claim(store, shop, { now, share });
  await record(
    store,
    claims.map((each) => (how === "delivered" ? succeeded(each, now) : failed(each, now))),
    how === "retrying" ? [HOUR] : [],
  );
  return claims;
}

/** One webhook and one trigger of each status, oldest first: delivered, dead, retrying, pending. */
async function fill(store: Store, shop: ShopRef): Promise<void> {
  for (const [n, how] of (["delivered", "dead", "retrying"] as const).entries()) {
    await commit(store, shop, [subscription(n + 1)], START + n);
    await end(store, shop, how, START + n);
  }
  await commit(store, shop, [subscription(9)], START + 3);
}

for (const engine of engines()) {
  describe(`${engine.name}: the delivery log`, () => {
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
    });

    test("has all details of each delivery", async () => {
      const { store, rows } = await engine.open();
      const shop = await shopWithEvents(store);
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
        error: "The endpoint responded with HTTP 500.",
        createdAt: START + 1,
      };
      expect(dead).toEqual(known);
      const history = [{ number: 1, startedAt: START + 1, duration: 7, statusCode: 500, error: known.error }];
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

    test("does not show another shop's delivery, or one that is not there", async () => {
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

  describe(`${engine.name}: retrying a delivery by hand`, () => {
    test.each(["dead", "delivered"] as const)("that is %s begins a new round, and the count goes on", async (how) => {
      const { store, rows } = await engine.open();
      const shop = await shopWithEvents(store);
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
      const { store, rows } = await engine.open();
      const shop = await shopWithEvents(store);
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
      const { store, rows } = await engine.open();
      const shop = await shopWithEvents(store);
      await queueRewards(store, shop, [1]);
      const [claimed] = await claim(store, shop);
      const before = await rows("deliveries");
      const id = claimed?.id ?? "";
      const [refused] = await failures([store.deliveries.retry(shop.id, id, START + LEASE - 1)]);
      expect(refused).toMatchObject({
        name: "SdsError",
        code: "conflict",
        message: `an attempt of ${id} is under way`,
      });
      expect(await rows("deliveries")).toEqual(before);
      const retried = { status: "pending", attempts: 0, nextAttemptAt: START + LEASE };
      expect(await store.deliveries.retry(shop.id, id, START + LEASE)).toMatchObject(retried);
      // The attempt that was under way ends too late to count.
      if (claimed !== undefined) await record(store, [succeeded(claimed)]);
      expect(await store.deliveries.show(shop.id, id)).toMatchObject(retried);
    });

    test("changes no other delivery", async () => {
      const { store, rows } = await engine.open();
      const shop = await shopWithEvents(store);
      await queueRewards(store, shop, [1, 2]);
      const [claimed, other] = await end(store, shop, "dead");
      const others = async () => (await rows("deliveries")).filter(({ id }) => id === other?.id);
      const before = await others();
      await store.deliveries.retry(shop.id, claimed?.id ?? "", START + 50);
      expect(await others()).toEqual(before);
    });
  });

  describe(`${engine.name}: dead deliveries`, () => {
    test("are counted and retried by kind and by when they were queued", async () => {
      const { store, rows } = await engine.open();
      const [shop, other] = [await shopWithEvents(store), await shopWithEvents(store, "other")];
      for (const each of [shop, other]) {
        for (const n of [1, 2, 3]) await commit(store, each, [subscription(n)], START + n);
        await end(store, each, "dead", START + 3);
        await commit(store, each, [reward("r"), subscription(8)], START + 4);
        await end(store, each, "delivered", START + 4);
      }
      const { deliveries } = store;
      const counts = (since: number) =>
        Promise.all([
          deliveries.countDead(shop.id, since),
          deliveries.countDead(shop.id, since, "webhook"),
          deliveries.countDead(shop.id, since, "trigger"),
        ]);
      expect(await counts(0)).toEqual([6, 3, 3]);
      expect(await counts(START + 2)).toEqual([4, 2, 2]);
      expect(await counts(START + 4)).toEqual([0, 0, 0]);

      expect(await deliveries.retryDead(shop.id, START + 3, START + 50, "trigger")).toBe(1);
      expect(await counts(0)).toEqual([5, 3, 2]);
      const queued = (await rows("deliveries")).filter(({ status }) => status === "pending");
      expect(queued).toMatchObject([
        {
          shop_id: shop.id,
          kind: "trigger",
          created_at: START + 3,
          round: 0,
          attempts: 1,
          next_attempt_at: START + 50,
          claimable_at: START + 50,
          lease: null,
          ended_at: null,
        },
      ]);

      expect(await deliveries.retryDead(shop.id, 0, START + 60)).toBe(5);
      expect(await counts(0)).toEqual([0, 0, 0]);
      expect(await deliveries.retryDead(shop.id, 0, START + 60)).toBe(0);
      expect(await deliveries.countDead(other.id, 0)).toBe(6);
      expect(await deliveries.list(shop.id, { limit: 20, status: "delivered" })).toHaveLength(4);
      expect(await claim(store, shop, { now: START + 60 })).toHaveLength(6);
    });

    test("are retried once each, even more than 1,000, and pruned when delivered", async () => {
      const { store } = await engine.open();
      const shop = await shopWithEvents(store);
      const ids = Array.from({ length: 2_100 }, (_, n) => n);
      await queueRewards(store, shop, ids);
      await end(store, shop, "dead");
      expect(await store.deliveries.countDead(shop.id, 0, "webhook")).toBe(2_100);
      const retrying = store.deliveries.retryDead(shop.id, 0, START + 1);
      let deadAgain: Claim[] = [];
      while (deadAgain.length === 0) deadAgain = await end(store, shop, "dead", START + 1, 1);
      expect(await retrying).toBe(2_100);
      expect(await store.deliveries.countDead(shop.id, 0)).toBe(1);
      expect(await end(store, shop, "delivered", START + 1)).toHaveLength(2_099);
      await store.deliveries.prune(START + HOUR);
      expect((await store.deliveries.list(shop.id, { limit: 10 })).map(({ id, status }) => [id, status])).toEqual([
        [deadAgain[0]?.id ?? "", "dead"],
      ]);
    });
  });

  describe(`${engine.name}: a test event`, () => {
    test("is queued for any choice of topics, signed with the newest secret, and marked", async () => {
      const { store, rows } = await engine.open();
      const [other, shop] = [await shopWithEvents(store, "other"), await addShop(store)];
      await store.webhooks.set(shop.id, { url: URL }, START);
      for (let version = 2; version <= 10; version += 1) await store.webhooks.rotateSecret(shop.id, START);
      const id = await store.deliveries.queueTest(shop, event, START + 1);
      const created_at = "2026-03-01T12:00:00.001Z";
      const body = JSON.stringify({ id, topic: "order.charged", created_at, shop: shop.domain, data: { cents: 5 } });
      const listed = {
        id,
        kind: "webhook",
        topic: "order.charged",
        test: true,
        status: "pending",
        attempts: 0,
        nextAttemptAt: START + 1,
        createdAt: START + 1,
      };
      expect(await store.deliveries.list(shop.id, { limit: 5 })).toMatchObject([listed]);
      expect(await rows("deliveries")).toMatchObject([
        { id, shop_id: shop.id, test: true, body, secret_version: 10, claimable_at: START + 1 },
      ]);
      expect(await claim(store, shop, { now: START + 1 })).toMatchObject([{ id, body, secretVersion: 10, url: URL }]);
      expect(await store.deliveries.queueTest(other, event, START)).not.toBe(id);
    });

    test("of a shop that was removed is refused", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store);
      await removeShop(store, shop.domain);
      const [failure] = await failures([store.deliveries.queueTest(shop, event, START)]);
      expect(failure).toBeInstanceOf(StoreError);
      expect(failure).toMatchObject({ reason: "conflict" });
      expect(await rows("deliveries")).toEqual([]);
    });
  });

  describe(`${engine.name}: pruning deliveries`, () => {
    test("removes what was delivered before a time, with its attempts, in every shop, and keeps the rest", async () => {
      const { store, rows } = await engine.open();
      const shops = [
        await shopWithEvents(store, "alpha"),
        await shopWithEvents(store, "beta"),
        await addShop(store, "idle"),
      ];
      for (const shop of shops.slice(0, 2)) {
        await fill(store, shop);
        await queueRewards(store, shop, ["later"], START + 10);
        await end(store, shop, "delivered", START + 10);
      }
      const before = await rows("deliveries");
      const attempts = await rows("attempts");
      // The first ended at START + 5.
      await store.deliveries.prune(START + 5);
      expect(await rows("deliveries")).toEqual(before);
      await store.deliveries.prune(START + 6);
      const isForgotten = ({ status, ended_at }: Record<string, unknown>) =>
        status === "delivered" && ended_at === START + 5;
      expect(await rows("deliveries")).toEqual(before.filter((row) => !isForgotten(row)));
      const forgotten = new Set(before.filter(isForgotten).map(({ number }) => number));
      expect(forgotten.size).toBe(4);
      expect(await rows("attempts")).toEqual(attempts.filter(({ delivery }) => !forgotten.has(delivery)));
    });
  });
}
