import { describe, expect, test } from "bun:test";
import { SQL } from "bun";
import type { ShopRef } from "../../../src/domain/shop.ts";
import type { AttemptResult } from "../../../src/store/port/deliveries.ts";
import type { Store } from "../../../src/store/port/store.ts";
import {
  end,
  event,
  failed,
  LEASE,
  queueRewards,
  record,
  succeeded,
  WAITS,
} from "../../conformance/delivery-fixtures.ts";
import { engines } from "../../conformance/engines.ts";
import { HOUR, removeShop, shopWithEvents } from "../../conformance/fixtures.ts";
import { START } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { hasPostgres } from "../../support/postgres-server.ts";
import { databaseWithTables, openStoreAt } from "../../support/postgres-store.ts";

const postgres = engines().filter(({ name }) => name === "postgres");

async function queueTests(store: Store, shop: ShopRef, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => store.deliveries.queueTest(shop, event, START)));
}

function claimWithin(store: Store, shop: ShopRef, share: number, limit: number, now = START) {
  const claims = [{ shopId: shop.id, kind: "webhook" as const, count: share, limit }];
  return store.deliveries.recordAndClaim([], claims, now, now + LEASE, WAITS);
}

describe.each(postgres)("$name: the limit of a shop", ({ open }) => {
  test("holds for all processes together, and recorded results free slots", async () => {
    const { store, reopen } = await open();
    const other = await reopen();
    const [shop, unlimited] = [await shopWithEvents(store), await shopWithEvents(store, "other")];
    for (const each of [shop, unlimited]) await queueTests(store, each, 10);
    const { claimed } = await claimWithin(store, shop, 3, 4);
    expect(claimed).toHaveLength(3);
    expect((await claimWithin(other, shop, 4, 4)).claimed).toHaveLength(1);
    expect((await claimWithin(other, shop, 4, 4)).claimed).toEqual([]);
    expect((await claimWithin(other, shop, 4, 1)).claimed).toEqual([]);
    expect(
      await store.deliveries.recordAndClaim(
        [],
        [{ shopId: unlimited.id, kind: "webhook", count: 9 }],
        START,
        START + LEASE,
        WAITS,
      ),
    ).toMatchObject({ claimed: { length: 9 } });
    // The two failed deliveries wait for their retry without a lease, so they do not count against the limit.
    await record(
      store,
      claimed.slice(0, 2).map((each) => failed(each)),
    );
    expect((await claimWithin(other, shop, 4, 4)).claimed).toHaveLength(2);
    // An expired lease does not count against the limit.
    expect((await claimWithin(other, shop, 9, 4, START + LEASE)).claimed).toHaveLength(4);
  });

  test("holds when three processes claim at the same moment", async () => {
    const { store, reopen } = await open();
    const stores = [store, await reopen(), await reopen()];
    const shop = await shopWithEvents(store);
    await queueTests(store, shop, 60);
    for (let round = 0; round < 15; round += 1) {
      const turns = await Promise.all(stores.map((each) => claimWithin(each, shop, 3, 4)));
      const claimed = turns.flatMap((turn) => turn.claimed);
      expect(claimed).toHaveLength(4);
      await record(
        store,
        claimed.map((each) => succeeded(each)),
      );
    }
  });

  test("is never exceeded while three processes claim and record, and each delivery is attempted once", async () => {
    const { store, reopen, rows } = await open();
    const stores = [store, await reopen(), await reopen()];
    const shops = [await shopWithEvents(store, "alpha"), await shopWithEvents(store, "beta")];
    for (const shop of shops) await queueTests(store, shop, 100);
    const underWay = new Map(shops.map(({ id }) => [id, 0]));
    const attempted: string[] = [];
    let most = 0;

    async function work(own: Store, place: number): Promise<void> {
      // Each process has its own order of shops. This must not cause a deadlock.
      const ids = shops.map(({ id }) => id).toSorted((a, b) => (place % 2 === 0 ? a - b : b - a));
      const claims = ids.map((shopId) => ({ shopId, kind: "webhook" as const, count: 4, limit: 4 }));
      let ended: AttemptResult[] = [];
      for (let idle = 0; idle < 5; ) {
        for (const { claim } of ended) underWay.set(claim.shopId, (underWay.get(claim.shopId) ?? 0) - 1);
        const { claimed, recorded } = await own.deliveries.recordAndClaim(ended, claims, START, START + LEASE, WAITS);
        expect(recorded).toEqual(ended);
        for (const { id, shopId } of claimed) {
          attempted.push(id);
          underWay.set(shopId, (underWay.get(shopId) ?? 0) + 1);
          most = Math.max(most, underWay.get(shopId) ?? 0);
        }
        idle = claimed.length === 0 && ended.length === 0 ? idle + 1 : 0;
        ended = claimed.map((each) => succeeded(each));
      }
    }

    await Promise.all(stores.map(work));
    expect([attempted.length, new Set(attempted).size]).toEqual([200, 200]);
    expect(most).toBe(4);
    expect((await rows("deliveries")).every(({ status }) => status === "delivered")).toBe(true);
    expect(await rows("attempts")).toHaveLength(200);
    expect((await rows("delivery_counts")).map(({ outcome, attempts }) => [outcome, attempts])).toEqual([
      ["delivered", 100],
      ["delivered", 100],
    ]);
  });
});

test.skipIf(!hasPostgres())("the subjects of deliveries are removed with the deliveries", async () => {
  const url = await databaseWithTables();
  const store = await openStoreAt(url);
  const sql = new SQL(url, { max: 1 });
  afterTest(() => sql.close());
  const subjects = async () => (await sql.unsafe("SELECT number FROM delivery_subjects")).length;
  const [shop, other] = [await shopWithEvents(store, "alpha"), await shopWithEvents(store, "beta")];
  await queueRewards(store, shop, [1, 2]);
  await queueRewards(store, other, [1]);
  expect(await subjects()).toBe(3);
  await end(store, shop, "delivered", START, 1);
  await store.deliveries.prune(START + HOUR, 0);
  expect(await subjects()).toBe(2);
  await removeShop(store, shop.domain);
  expect(await subjects()).toBe(1);
});
