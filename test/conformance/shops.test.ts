import { describe, expect, test } from "bun:test";
import { hashKey } from "../../src/domain/key.ts";
import type { ShopRef } from "../../src/domain/shop.ts";
import { NO_COUNTS } from "../../src/domain/sync.ts";
import type { Store } from "../../src/store/store.ts";
import { START } from "../support/app.ts";
import { cancelFlow, customer, order, reward, subscription } from "../support/records.ts";
import { SHOP_TABLES } from "../support/tables.ts";
import { engines } from "./engines.ts";
import { addShop, chooseAllEvents, claim, commit, failed, failures, receipt, record } from "./fixtures.ts";

const DEFAULTS = { planFixed: false, retryDays: [1, 3, 5], creditTitle: "Loyalty credit", triggers: [] };
const removed = { name: "SdsError", code: "not_found" };

/** Gives a shop a row or more in every table. */
async function fillTables(store: Store, shop: ShopRef): Promise<void> {
  const name = shop.domain;
  await chooseAllEvents(store, shop);
  await store.keys.add(
    shop.id,
    { id: `key_${name}`, label: "Key", fingerprint: "cad_pk_1", createdAt: START, lastUsedAt: null, legacy: false },
    hashKey(name),
  );
  await store.sessions.addLink(shop.id, hashKey(`link ${name}`), START, START + 1);
  await store.sessions.addLink(shop.id, hashKey(`used ${name}`), START, START + 1);
  await store.sessions.begin(hashKey(`used ${name}`), hashKey(`session ${name}`), START, START + 1_000);
  const body = (await store.intakeBodies.begin(shop.id)) ?? 0;
  await store.intakeBodies.add(shop.id, body, ["[]"]);
  await store.syncs.save(shop.id, "full", {
    startedAt: START,
    events: false,
    stage: "orders",
    cursor: null,
    counts: NO_COUNTS,
  });
  await store.inbox.receive([receipt(shop, "w1")], START);
  await commit(store, shop, [subscription(1), order(1, 1), reward("r"), cancelFlow("c")]);
  const [claimed] = await claim(store, shop, { share: 1 });
  if (claimed !== undefined) await record(store, [failed(claimed)]);
}

for (const engine of engines()) {
  describe(`${engine.name}: shops`, () => {
    test("have the right row counts in the middle of their removal, for it can be interrupted", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store, "alpha.example.com");
      await commit(
        store,
        shop,
        Array.from({ length: 4_500 }, (_, index) => customer(index + 1)),
      );
      let isRemoved = false;
      const removal = store.shops.remove(shop.domain).then(() => {
        isRemoved = true;
      });
      const seen: number[] = [];
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        const counts = isRemoved ? undefined : await store.shops.rowCounts(shop.id).catch(() => undefined);
        if (counts === undefined) break;
        expect(counts.customers).toBe((await rows("customers")).length);
        seen.push(counts.customers);
      }
      await removal;
      expect(seen.some((count) => count > 0 && count < 4_500)).toBe(true);
    });

    test("are found by domain and by id, and listed by domain", async () => {
      const { store } = await engine.open();
      const beta = await store.shops.add({ domain: "beta.example.com", plan: "free", currency: "EUR" }, START + 1);
      const alpha = await store.shops.add(
        { domain: "alpha.example.com", plan: "pro", currency: "USD", planFixed: true },
        START,
      );
      expect(beta).toEqual({
        id: beta.id,
        domain: "beta.example.com",
        plan: "free",
        currency: "EUR",
        createdAt: START + 1,
      });
      expect(await store.shops.list()).toEqual([alpha, beta]);
      expect(await store.shops.find("beta.example.com")).toEqual(beta);
      expect(await store.shops.byId(alpha.id)).toEqual(alpha);
      expect(await store.shops.find("gamma.example.com")).toBeUndefined();
      expect(await store.shops.byId(beta.id + 100)).toBeUndefined();
      expect(await store.shops.settings(alpha.id)).toEqual({ ...DEFAULTS, planFixed: true });
      expect(await store.shops.settings(beta.id)).toEqual(DEFAULTS);
    });

    test("have a domain each", async () => {
      const { store } = await engine.open();
      const shop = await addShop(store);
      const again = store.shops.add({ domain: shop.domain, plan: "free", currency: "EUR" }, START);
      expect((await failures([again]))[0]).toMatchObject({
        code: "conflict",
        message: "the shop alpha.myshopify.com exists already",
      });
      expect(await store.shops.list()).toEqual([shop]);
    });

    test("keep the settings that a change does not name", async () => {
      const { store } = await engine.open();
      const [shop, other] = [await addShop(store), await addShop(store, "other")];
      expect(await store.shops.set(shop.domain, { plan: "free+addon", retryDays: [2, 4] })).toEqual({
        ...shop,
        plan: "free+addon",
      });
      expect(await store.shops.set(shop.domain, { currency: "EUR", planFixed: true })).toEqual({
        ...shop,
        plan: "free+addon",
        currency: "EUR",
      });
      await store.shops.set(shop.domain, {
        creditTitle: "Crédit ☕",
        triggers: ["subscription-created"],
        retryDays: [],
      });
      expect(await store.shops.settings(shop.id)).toEqual({
        planFixed: true,
        retryDays: [],
        creditTitle: "Crédit ☕",
        triggers: ["subscription-created"],
      });
      expect(await store.shops.find(other.domain)).toEqual(other);
      expect(await store.shops.settings(other.id)).toEqual(DEFAULTS);
    });

    test("that were removed have neither settings nor counts", async () => {
      const { store } = await engine.open();
      const { id, domain } = await addShop(store);
      await store.shops.remove(domain);
      const refused = await failures([
        store.shops.settings(id),
        store.shops.rowCounts(id),
        store.shops.set(domain, { plan: "free" }),
      ]);
      expect(refused).toMatchObject([removed, removed, { ...removed, message: `there is no shop ${domain}` }]);
    });
  });

  describe(`${engine.name}: the plan of the platform's app subscription`, () => {
    test("is set, and the result says whether it changed", async () => {
      const { store } = await engine.open();
      const [shop, other] = [await addShop(store), await addShop(store, "other")];
      expect(await store.shops.followPlan(shop.id, "free")).toBe(true);
      expect(await store.shops.followPlan(shop.id, "free")).toBe(false);
      expect((await store.shops.byId(shop.id))?.plan).toBe("free");
      expect((await store.shops.byId(other.id))?.plan).toBe("pro");
      expect(await store.shops.followPlan(other.id + 100, "free")).toBe(false);
    });

    test("does not replace the one that the operator chose", async () => {
      const { store } = await engine.open();
      const shop = await addShop(store);
      await store.shops.set(shop.domain, { planFixed: true });
      expect(await store.shops.followPlan(shop.id, "free")).toBe(false);
      expect((await store.shops.byId(shop.id))?.plan).toBe("pro");
    });
  });

  describe(`${engine.name}: the intake secret`, () => {
    test("is each shop's own, the same in every process, and sealed in the database", async () => {
      const { store, reopen, rows } = await engine.open();
      const [alpha, beta] = [await addShop(store, "alpha"), await addShop(store, "beta")];
      const secretOf = async (domain: string, of = store) => (await of.shops.intakeSecret(domain))?.secret ?? "";
      expect(await store.shops.intakeSecret(alpha.domain)).toEqual({
        shop: alpha,
        secret: expect.stringMatching(/^intake_[A-Za-z0-9+/]{43}=$/),
      });
      expect(await secretOf(beta.domain)).not.toBe(await secretOf(alpha.domain));
      expect(await secretOf(alpha.domain, await reopen())).toBe(await secretOf(alpha.domain));
      expect(await store.shops.intakeSecret("gamma.example.com")).toBeUndefined();
      const sealed = (await rows("shops")).map(({ intake_secret }) =>
        Buffer.from(String(intake_secret), "hex").toString("latin1"),
      );
      expect(sealed.filter((text) => text.includes("intake_"))).toEqual([]);
      expect(new Set(sealed).size).toBe(2);
    });
  });

  describe(`${engine.name}: removing a shop`, () => {
    test("removes everything that is stored about it, and nothing of another shop", async () => {
      const { store, rows } = await engine.open();
      const [alpha, beta] = [await addShop(store, "alpha"), await addShop(store, "beta")];
      await fillTables(store, alpha);
      await fillTables(store, beta);
      const tables = ["shops", ...SHOP_TABLES] as const;
      const before = await Promise.all(tables.map(async (table) => [table, await rows(table)] as const));
      const idOf = (row: Record<string, unknown>) => row["shop_id"] ?? row["id"];
      const shopsOf = (all: typeof before) => all.map(([table, list]) => [table, [...new Set(list.map(idOf))]]);
      expect(shopsOf(before)).toEqual(tables.map((table) => [table, [alpha.id, beta.id]]));

      expect(await store.shops.remove(alpha.domain)).toBe(true);
      const after = await Promise.all(tables.map(async (table) => [table, await rows(table)] as const));
      expect(after).toEqual(before.map(([table, list]) => [table, list.filter((row) => idOf(row) === beta.id)]));
      expect(await store.shops.remove(alpha.domain)).toBe(false);
    });

    test("removes all rows of a large shop", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store);
      await commit(
        store,
        shop,
        Array.from({ length: 4_500 }, (_, n) => customer(n + 1)),
      );
      expect(await store.shops.remove(shop.domain)).toBe(true);
      expect([await rows("customers"), await rows("shops")]).toEqual([[], []]);
    });

    test("never gives its id to another shop, so what still arrives for it is dropped", async () => {
      const { store, rows } = await engine.open();
      const alpha = await addShop(store, "alpha");
      await store.shops.remove(alpha.domain);
      const again = await addShop(store, "alpha");
      expect(again.id).toBeGreaterThan(alpha.id);
      expect(await store.inbox.receive([receipt(alpha, "w1")], START)).toEqual([false]);
      expect(await store.mirror.applyRecords([{ shop: alpha, records: [customer(1)] }], START)).toMatchObject([
        { refused: {} },
      ]);
      expect(await store.shops.followPlan(alpha.id, "free")).toBe(false);
      expect([await rows("customers"), await rows("inbox")]).toEqual([[], []]);
    });
  });
}
