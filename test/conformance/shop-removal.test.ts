import { describe, expect, test } from "bun:test";
import { auditEntry } from "../../src/domain/audit.ts";
import { hashKey } from "../../src/domain/key.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { OPERATOR, signInAt } from "../support/actors.ts";
import { START } from "../support/app.ts";
import { customer } from "../support/records.ts";
import { SHOP_TABLES } from "../support/tables.ts";
import { claim, dueShopIds, LEASE, succeeded } from "./delivery-fixtures.ts";
import { engines, storeWithShop, type TestStore } from "./engines.ts";
import { fillTables, RUN } from "./filled-tables.ts";
import { apiKey, commit, expectConflict, failures, receipt, removeShop, shopWithEvents, TOKENS } from "./fixtures.ts";

// `uninstallations` has no row of a connected shop. `former_branches` has rows only after a failover, and the other two
// tables only after a move.
const WITHOUT_ROWS = ["uninstallations", "former_branches", "checkpoint_origins", "shop_moves"];
const TABLES = ["shops", ...SHOP_TABLES.filter((table) => !WITHOUT_ROWS.includes(table))] as const;
const request = { topic: "shop/redact", subject: "shop", needsPlatform: false };
/** Adds two shops with rows in every table. The platform has asked to remove the first shop. */
async function twoShops(opened: TestStore) {
  const { store } = opened;
  const [alpha, beta] = [await shopWithEvents(store, "alpha"), await shopWithEvents(store, "beta")];
  await fillTables(store, alpha);
  await fillTables(store, beta);
  await store.inbox.receive([receipt(alpha, "asked", request)], START + 1);
  return { ...opened, alpha, beta };
}

/** Reads the rows of each table that belong to a shop. */
async function rowsOf({ rows }: TestStore, shop: MirroredShop): Promise<Record<string, unknown[]>> {
  const lists = await Promise.all(
    TABLES.map(async (table) => {
      const own = (await rows(table)).filter((row) => (table === "shops" ? row["id"] : row["shop_id"]) === shop.id);
      return [table, own] as const;
    }),
  );
  return Object.fromEntries(lists);
}

const tablesWithRows = (all: Record<string, unknown[]>) => TABLES.filter((table) => (all[table]?.length ?? 0) > 0);

describe.each(engines())("$name: removing a shop", (engine) => {
  test("removes everything that is stored about it, and nothing of another shop", async () => {
    const opened = await engine.open();
    const { store, alpha, beta } = await twoShops(opened);
    expect(tablesWithRows(await rowsOf(opened, alpha))).toEqual([...TABLES]);
    const before = await rowsOf(opened, beta);
    expect(tablesWithRows(before)).toEqual([...TABLES]);
    expect(await removeShop(store, alpha.domain)).toBe(true);
    expect(tablesWithRows(await rowsOf(opened, alpha))).toEqual([]);
    expect(await rowsOf(opened, beta)).toEqual(before);
    expect(await removeShop(store, alpha.domain)).toBe(false);
    expect(await store.shops.removing()).toEqual([]);
  });

  test("removes when it uninstalled the app", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await store.connections.connect(shop.id, "token", TOKENS, [], START);
    await store.connections.uninstall(shop.id, START + 1);
    expect(await rows("uninstallations")).toHaveLength(1);
    await removeShop(store, shop.domain);
    expect(await rows("uninstallations")).toEqual([]);
  });

  test("goes in steps of a limited number of rows and bytes", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await commit(
      store,
      shop,
      Array.from({ length: 1_500 }, (_, n) => customer(n + 1)),
    );
    for (let n = 0; n < 4; n += 1)
      await store.inbox.receive([receipt(shop, null, { body: "x".repeat(1024 * 1024) })], START);
    for (let n = 0; n < 1_000; n += 1) await store.audit.add(shop.id, auditEntry(OPERATOR, START, "secret.shown"));
    await store.shops.beginRemoval(shop.domain, START);
    const left: number[][] = [];
    for (let more = true; more; more = await store.shops.removeSome(shop.id))
      left.push(
        await Promise.all((["customers", "inbox", "audit"] as const).map(async (name) => (await rows(name)).length)),
      );
    const steps = left.slice(1).map((counts, index) => counts.map((count, n) => (left[index]?.[n] ?? 0) - count));
    expect(Math.max(...steps.map(([customers]) => customers ?? 0))).toBeLessThan(1_000);
    expect(Math.max(...steps.map(([, items]) => items ?? 0))).toBe(1);
    expect(Math.max(...steps.map(([, , entries]) => entries ?? 0))).toBe(400);
    expect([left[0]?.[2], left.at(-1)]).toEqual([1_000, [0, 0, 0]]);
    expect(await rows("shops")).toEqual([]);
  });

  test("goes on after an interruption at any step, in any process", async () => {
    const opened = await engine.open();
    const { store, alpha, beta } = await twoShops(opened);
    const before = await rowsOf(opened, beta);
    await store.shops.beginRemoval(alpha.domain, START);
    // Each store acts as a separate process, which does not know the other stores' steps.
    const others = [await opened.reopen(), await opened.reopen(), await opened.reopen()];
    let steps = 0;
    for (let more = true; more; steps += 1) {
      const other = others[steps % others.length] as Store;
      expect(await other.shops.removing()).toEqual([{ id: alpha.id, domain: alpha.domain }]);
      // A repeated command finds the shop, and does not begin a second removal.
      expect(await other.shops.beginRemoval(alpha.domain, START + 1)).toEqual({ id: alpha.id, domain: alpha.domain });
      more = await other.shops.removeSome(alpha.id);
    }
    expect(steps).toBeGreaterThan(5);
    expect(tablesWithRows(await rowsOf(opened, alpha))).toEqual([]);
    expect(await rowsOf(opened, beta)).toEqual(before);
  });

  test("keeps the request for it, and the id of the request, until all other rows are gone", async () => {
    const opened = await engine.open();
    const { store, alpha } = await twoShops(opened);
    await store.shops.beginRemoval(alpha.domain, START);
    let last = await rowsOf(opened, alpha);
    for (let more = true; more; ) {
      last = await rowsOf(opened, alpha);
      expect(last["inbox"]).toContainEqual(expect.objectContaining({ topic: "shop/redact" }));
      expect(last["platform_webhooks"]).toContainEqual(expect.objectContaining({ id: "asked" }));
      more = await store.shops.removeSome(alpha.id);
    }
    expect(tablesWithRows(last)).toEqual(["shops", "inbox", "platform_webhooks", "webhook_secrets"]);
    expect([last["inbox"]?.length, last["platform_webhooks"]?.length]).toEqual([1, 1]);
  });

  test("of two shops begins with the shop whose removal began first", async () => {
    const { store, alpha, beta } = await twoShops(await engine.open());
    await store.shops.beginRemoval(beta.domain, START);
    await store.shops.beginRemoval(alpha.domain, START + 1);
    await store.shops.beginRemoval(beta.domain, START + 2);
    expect((await store.shops.removing()).map(({ id }) => id)).toEqual([beta.id, alpha.id]);
  });

  test("never gives its id to another shop, so what still arrives for it is dropped", async () => {
    const { store, rows } = await engine.open();
    const alpha = await shopWithEvents(store, "alpha");
    await removeShop(store, alpha.domain);
    const again = await shopWithEvents(store, "alpha");
    expect(again.id).toBeGreaterThan(alpha.id);
    expect(await store.inbox.receive([receipt(alpha, "w1")], START)).toEqual([false]);
    expect(await store.mirror.applyRecords([{ shop: alpha, records: [customer(1)] }], START, [])).toMatchObject([
      { refused: {} },
    ]);
    expect(await store.shops.followPlan(alpha.id, "free")).toBe(false);
    expect([await rows("customers"), await rows("inbox")]).toEqual([[], []]);
  });
});

describe.each(engines())("$name: a shop that is being removed", (engine) => {
  test("is not served, although its rows still exist", async () => {
    const opened = await engine.open();
    const { store, alpha, beta } = await twoShops(opened);
    const [claimed] = await claim(store, alpha, { share: 1 });
    await store.shops.beginRemoval(alpha.domain, START);
    const { shops, keys, sessions, connections, inbox, syncs, webhooks } = store;
    expect(await shops.list()).toEqual([beta]);
    expect(await shops.find(alpha.domain)).toBeUndefined();
    expect(await shops.byId(alpha.id)).toBeUndefined();
    expect(await shops.intakeSecret(alpha.domain)).toBeUndefined();
    expect(await keys.find(hashKey(alpha.domain))).toBeUndefined();
    expect(await sessions.find(hashKey(`session ${alpha.domain}`), START)).toBeUndefined();
    expect(await sessions.begin(hashKey(`link ${alpha.domain}`), hashKey("new"), signInAt(START), START + 1_000)).toBe(
      false,
    );
    expect(await webhooks.settings(alpha.id)).toEqual({ url: null, topics: [] });
    expect(await connections.tokens(alpha.id)).toBeUndefined();
    expect(await connections.tokens(beta.id)).toBeDefined();
    expect(await syncs.unfinished(alpha.id, "full")).toBeUndefined();
    const later = START + 2 * LEASE;
    expect(await dueShopIds(store, later)).toEqual([beta.id]);
    expect(await claim(store, alpha, { now: later, ended: claimed ? [succeeded(claimed)] : [] })).toEqual([]);
    expect((await inbox.dueQueues(later)).map(({ shopId }) => shopId)).toEqual([beta.id]);
    expect((await rowsOf(opened, alpha))["deliveries"]?.length).toBeGreaterThan(1);
  });

  test("gets no new row and no change, even from callers who found it earlier", async () => {
    const opened = await engine.open();
    const { store, alpha } = await twoShops(opened);
    await store.shops.beginRemoval(alpha.domain, START);
    const before = await rowsOf(opened, alpha);
    const { shops, keys, sessions, connections, deliveries, inbox, syncs, webhooks, mirror } = store;
    const { id } = alpha;
    expect(await mirror.applyRecords([{ shop: alpha, records: [customer(9)] }], START, [])).toMatchObject([
      { refused: { reason: `is for a shop that was removed: ${alpha.domain}` } },
    ]);
    // The platform repeats its request. The inbox does not store it again, because the shop is already marked for
    // removal.
    const again = [receipt(alpha, "asked", request), receipt(alpha, "new"), receipt(alpha, null)];
    expect(await inbox.receive(again, START)).toEqual([false, false, false]);
    expect(await shops.followPlan(id, "free")).toBe(false);
    const missing = await failures([
      shops.settings(id),
      shops.rowCounts(id),
      shops.set(alpha.domain, { plan: "free" }),
      webhooks.secret(id, START),
      webhooks.rotateSecret(id, START),
      webhooks.set(id, { topics: [] }, START),
    ]);
    expect(missing).toMatchObject(missing.map(() => ({ name: "SdsError", code: "not_found" })));
    await expectConflict(
      keys.add(id, apiKey("new"), hashKey("new")),
      sessions.addLink(id, hashKey("new link"), START + 10),
      connections.connect(id, "token", TOKENS, [], START),
      syncs.save(id, "full", RUN),
      syncs.complete(id, "full", START, 0, START),
      deliveries.queueTest(alpha, { topic: "order.charged", data: {} }, START),
    );
    expect(await rowsOf(opened, alpha)).toEqual(before);
  });

  test("keeps its domain until it is gone: adding it again says why, and works afterwards", async () => {
    const { store, alpha } = await twoShops(await engine.open());
    await store.shops.beginRemoval(alpha.domain, START);
    const add = () => store.shops.add({ domain: alpha.domain, plan: "pro", currency: "USD" }, START);
    const message = expect.stringContaining(`the shop ${alpha.domain} is being removed`);
    await expect(add()).rejects.toMatchObject({ code: "conflict", message });
    await removeShop(store, alpha.domain);
    expect(await add()).toMatchObject({ domain: alpha.domain });
  });

  test("is skipped by pruning and by forgetting receipts", async () => {
    const opened = await engine.open();
    const { store, alpha, beta } = await twoShops(opened);
    await store.shops.beginRemoval(alpha.domain, START);
    const before = await rowsOf(opened, alpha);
    await store.inbox.forgetReceipts(START + 10);
    await store.deliveries.prune(START + 10, START);
    expect(await rowsOf(opened, alpha)).toEqual(before);
    expect((await rowsOf(opened, beta))["platform_webhooks"]).toEqual([]);
  });
});
