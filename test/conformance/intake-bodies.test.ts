import { describe, expect, test } from "bun:test";
import type { ShopRef } from "../../src/domain/shop.ts";
import type { IntakeBody } from "../../src/store/port/intake-bodies.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../support/records.ts";
import { engines } from "./engines.ts";
import { addShop, chooseAllEvents, commit, failures, removeShop } from "./fixtures.ts";

const NO_LIMITS = { parts: 100, characters: 1e9 };
const ADA = { email: "ada@example.com", firstName: "Ada", lastName: "Lovelace" };

async function add({ intakeBodies }: Store, shop: ShopRef, ...parts: unknown[][]): Promise<number> {
  const number = (await intakeBodies.begin(shop.id)) ?? 0;
  await intakeBodies.add(
    shop.id,
    number,
    parts.map((part) => JSON.stringify(part)),
  );
  return number;
}

async function addComplete(store: Store, shop: ShopRef, ...parts: unknown[][]): Promise<IntakeBody> {
  const number = await add(store, shop, ...parts);
  expect(await store.intakeBodies.complete(shop.id, number, parts.length)).toBe(true);
  return { number, shop: { id: shop.id, domain: shop.domain } };
}

for (const engine of engines()) {
  describe(`${engine.name}: a large body`, () => {
    test("is applied part by part, and each part goes in the commit that applies it", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store);
      await chooseAllEvents(store, shop);
      const body = await addComplete(store, shop, [customer(1), subscription(1)], [order(1, 1)], [customer(2)]);
      expect(await store.intakeBodies.oldestOfEachShop()).toMatchObject([body]);

      const limits = { parts: 1, characters: 1e9 };
      expect(await store.mirror.applyIntakeParts(body, limits, START)).toMatchObject({ accepted: 2, changed: 2 });
      expect(await rows("intake_parts")).toHaveLength(2);
      expect(await store.intakeBodies.oldestOfEachShop()).toMatchObject([body]);
      expect(await store.mirror.applyIntakeParts(body, { ...limits, parts: 5 }, START)).toMatchObject({ accepted: 2 });
      expect([await rows("intake_parts"), await rows("intake_bodies")]).toEqual([[], []]);
      expect(await store.intakeBodies.oldestOfEachShop()).toEqual([]);
      expect(await store.mirror.applyIntakeParts(body, limits, START)).toBeUndefined();
      expect(await store.shops.rowCounts(shop.id)).toEqual({ customers: 2, subscriptions: 1, orders: 1 });
    });

    test("is applied as far as the limit of characters allows, and one part in any case", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store);
      const parts = [1, 2, 3, 4].map((n) => [customer(n)]);
      const body = await addComplete(store, shop, ...parts);
      const left = async (characters: number) => {
        await store.mirror.applyIntakeParts(body, { parts: 100, characters }, START);
        return (await rows("intake_parts")).length;
      };
      expect(await left(1)).toBe(3);
      expect(await left(2 * JSON.stringify(parts[0]).length)).toBe(1);
    });

    test("waits behind those that were complete earlier, and only if it is complete itself", async () => {
      const { store } = await engine.open();
      const [alpha, beta] = [await addShop(store, "alpha"), await addShop(store, "beta")];
      const first = await addComplete(store, alpha, [customer(1)]);
      const open = await add(store, alpha, [customer(2)]);
      expect(await store.intakeBodies.isWaiting(beta.id)).toBe(false);
      await add(store, beta, [customer(2)]);
      expect(await Promise.all([alpha, beta].map(({ id }) => store.intakeBodies.isWaiting(id)))).toEqual([true, false]);
      const last = await addComplete(store, beta, [customer(3)]);
      expect(await store.intakeBodies.oldestOfEachShop()).toMatchObject([first, last]);
      expect(await store.intakeBodies.complete(alpha.id, open, 2)).toBe(false);
      expect(await store.intakeBodies.complete(beta.id, open, 1)).toBe(false);
      expect(await store.intakeBodies.oldestOfEachShop()).toMatchObject([first, last]);
      expect(await store.intakeBodies.complete(alpha.id, open, 1)).toBe(true);
      expect(await store.intakeBodies.oldestOfEachShop()).toMatchObject([first, last]);
    });

    test("that is not complete is removed, and others stay", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store);
      const body = await addComplete(store, shop, [customer(1)]);
      await add(store, shop, ...Array.from({ length: 50 }, (_, n) => [customer(n)]));
      await store.intakeBodies.removeIncomplete();
      expect(await rows("intake_bodies")).toMatchObject([{ number: body.number, complete: true }]);
      expect(await rows("intake_parts")).toHaveLength(1);
      await store.intakeBodies.remove(shop.id, body.number);
      expect([await rows("intake_parts"), await rows("intake_bodies")]).toEqual([[], []]);
    });

    test("that was removed gets no more parts, and cannot be completed", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store);
      const number = await add(store, shop, [customer(1)]);
      await store.intakeBodies.remove(shop.id, number);
      expect(await failures([store.intakeBodies.add(shop.id, number, ["[]"])])).toMatchObject([
        { name: "StoreError", reason: "conflict" },
      ]);
      expect(await store.intakeBodies.complete(shop.id, number, 1)).toBe(false);
      await store.intakeBodies.remove(shop.id, number);
      expect([await rows("intake_parts"), await rows("intake_bodies")]).toEqual([[], []]);
    });

    test("that one process removes while another adds to it and completes it leaves nothing", async () => {
      const { store, reopen, rows } = await engine.open();
      const other = await reopen();
      const shop = await addShop(store);
      for (let round = 0; round < 10; round += 1) {
        const number = await add(store, shop, ...Array.from({ length: 20 }, () => []));
        await failures([
          store.intakeBodies.add(shop.id, number, ["[]"]),
          other.intakeBodies.remove(shop.id, number),
          store.intakeBodies.complete(shop.id, number, 21),
        ]);
        expect(await store.intakeBodies.oldestOfEachShop()).toEqual([]);
        expect([await rows("intake_parts"), await rows("intake_bodies")]).toEqual([[], []]);
      }
    });

    test("is of another node while that node is alive", async () => {
      const { store, reopen } = await engine.open();
      const other = await reopen();
      const shop = await addShop(store);
      const body = await addComplete(store, shop, [customer(1)]);
      const answers = async () => {
        const seen = await Promise.all([store, other].map((each) => each.intakeBodies.oldestOfEachShop()));
        expect(seen).toMatchObject([[body], [body]]);
        return seen.flat().map(({ isOfOther }) => isOfOther);
      };
      expect(await answers()).toEqual([false, false]);
      await store.nodes?.beat();
      // Without nodes, a process has the database to itself.
      expect(await answers()).toEqual([false, store.nodes !== null]);
      await store.nodes?.leave();
      expect(await answers()).toEqual([false, false]);
    });

    test("of a removed shop cannot begin, and one that waits goes with its shop", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store);
      const body = await addComplete(store, shop, [customer(1)]);
      expect(await store.intakeBodies.canBegin(shop.id)).toBe(true);
      await removeShop(store, shop.domain);
      expect(await store.intakeBodies.canBegin(shop.id)).toBe(false);
      expect(await rows("intake_bodies")).toEqual([]);
      expect(await store.intakeBodies.begin(shop.id)).toBeUndefined();
      expect(await store.mirror.applyIntakeParts(body, NO_LIMITS, START)).toBeUndefined();
    });

    test("with a record that is refused stays, and nothing of the commit is kept", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store);
      const body = await addComplete(store, shop, [customer(1)], [order(9, 1)]);
      expect(await store.mirror.applyIntakeParts(body, NO_LIMITS, START)).toMatchObject({ refused: { index: 1 } });
      expect(await rows("intake_parts")).toHaveLength(2);
      expect(await rows("customers")).toEqual([]);
    });

    test("that waits is redacted: a person's profile and rewards, and nobody else's", async () => {
      const { store, rows } = await engine.open();
      const [shop, other] = [await addShop(store), await addShop(store, "other")];
      const part = [
        customer(1, { ...ADA, creditsCents: 5 }),
        customer(2, ADA),
        reward("r", { email: ADA.email, cycles: 3 }),
        subscription(1),
        cancelFlow("c"),
      ];
      await addComplete(store, shop, part);
      await addComplete(store, other, part);
      await commit(store, shop, [{ type: "redaction", shopifyId: gid.customer(1), asOf: START }]);
      const [redacted, untouched] = (await rows("intake_parts")).map(({ records }) => JSON.parse(String(records)));
      expect(redacted).toEqual([
        customer(1, { creditsCents: 5 }),
        customer(2, ADA),
        reward("r", { email: null, cycles: 3 }),
        subscription(1),
        cancelFlow("c"),
      ]);
      expect(untouched).toEqual(part);
    });

    test("can ask which of its contracts are in the mirror", async () => {
      const { store } = await engine.open();
      const [shop, other] = [await addShop(store), await addShop(store, "other")];
      await commit(store, shop, [subscription(1), subscription(2)]);
      await commit(store, other, [subscription(3)]);
      const known = await store.mirror.knownContracts(shop, [1, 2, 3].map(gid.contract));
      expect([...known].sort()).toEqual([gid.contract(1), gid.contract(2)]);
      expect(await store.mirror.knownContracts(shop, [])).toEqual(new Set());
    });
  });
}
