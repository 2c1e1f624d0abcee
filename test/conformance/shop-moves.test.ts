import { describe, expect, test } from "bun:test";
import { hashKey } from "../../src/domain/key.ts";
import { createCheckpoints } from "../../src/domain/pages/checkpoint.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { abandonMove, cancelMove, type MoveRequest, moveShop } from "../../src/store/copy/move-shop.ts";
import { columnsOf, MOVED_TABLES, type MovedTable } from "../../src/store/copy/moved-tables.ts";
import type { MovedRow, ShopMoves } from "../../src/store/port/shop-moves.ts";
import type { Store } from "../../src/store/port/store.ts";
import { OPERATOR } from "../support/actors.ts";
import { randomBytes, START } from "../support/app.ts";
import { customer, order } from "../support/records.ts";
import { claim, dueShopIds, failed, record, succeeded } from "./delivery-fixtures.ts";
import { type Engine, engines } from "./engines.ts";
import { fillTables } from "./filled-tables.ts";
import { apiKey, commit, failures, receipt, removeShop, shopWithEvents, TOKENS } from "./fixtures.ts";

const PAIRS = engines().flatMap((from) => engines().map((to) => ({ from, to, pair: `${from.name} to ${to.name}` })));
const DOMAIN = "alpha.myshopify.com";

/** Opens two databases. The shop alpha is in the first one, each has another shop, and all have rows in every table. */
async function twoDatabases(from: Engine, to: Engine) {
  const [here, there] = [await from.open(), await to.open()];
  const beta = await shopWithEvents(here.store, "beta");
  await fillTables(here.store, beta);
  const alpha = await shopWithEvents(here.store, "alpha");
  await fillTables(here.store, alpha);
  await fillTables(there.store, await shopWithEvents(there.store, "gamma"));
  return { source: here.store, target: there.store, here, there, alpha, beta };
}

type Stores = Pick<MoveRequest, "source" | "target">;

function request({ source, target }: Stores, more: Partial<MoveRequest> = {}): MoveRequest {
  const silent = () => undefined;
  return {
    ...{ source, target, domain: DOMAIN, actor: OPERATOR, random: randomBytes },
    ...{ now: () => START + 10_000, sleep: async () => undefined, onRows: silent, onStop: silent, ...more },
  };
}

async function move(stores: { source: Store; target: Store }, more: Partial<MoveRequest> = {}): Promise<void> {
  expect(await moveShop(request(stores, more))).toBe(true);
  await removeShop(stores.source, DOMAIN);
}

/** Reads all rows of a shop as a move does, with numbers that begin at 0 in each table. */
async function contentOf({ moves }: Store, { id }: Pick<Shop, "id">): Promise<Record<string, MovedRow[]>> {
  const tables = await Promise.all(
    MOVED_TABLES.map(async (moved) => [moved, await moves.read({ id, offsets: {} }, moved.table.name, {})] as const),
  );
  const first = new Map(tables.map(([moved, rows]) => [moved.table.name, Math.min(...rows.map(numberIn(moved)))]));
  const plain = (moved: MovedTable, row: MovedRow) =>
    columnsOf(moved).map((column, index) => {
      const numbers = moved.numbersOf(column);
      const value = row[index] ?? null;
      return numbers === undefined || value === null ? value : Number(value) - (first.get(numbers) ?? 0);
    });
  return Object.fromEntries(tables.map(([moved, rows]) => [moved.table.name, rows.map((row) => plain(moved, row))]));
}

const numberIn = (moved: MovedTable) => (row: MovedRow) => Number(row[columnsOf(moved).indexOf("number")]);

const found = async (store: Store) => (await store.shops.find(DOMAIN)) as Shop;

/** The content of a moved shop, without what its move has added. */
function beforeMove(content: Record<string, MovedRow[]>): Record<string, MovedRow[]> {
  return { ...content, audit: content["audit"]?.slice(0, -1) ?? [], checkpoint_origins: [] };
}

describe.each(PAIRS)("$pair: moving a shop", ({ from, to }) => {
  test("takes every row of it along, and touches no other shop", async () => {
    const { alpha, beta, ...stores } = await twoDatabases(from, to);
    const { source, target } = stores;
    const gamma = (await target.shops.find("gamma.myshopify.com")) as Shop;
    const before = await contentOf(source, alpha);
    const others = [await contentOf(source, beta), await contentOf(target, gamma)];
    const empty = Object.entries(before).filter(([, rows]) => rows.length === 0);
    expect(empty.map(([name]) => name)).toEqual(["former_branches", "uninstallations", "checkpoint_origins"]);
    await move(stores);
    const moved = await found(target);
    const after = await contentOf(target, moved);
    expect(after["checkpoint_origins"]).toHaveLength(1);
    expect(beforeMove(after)).toEqual(before);
    expect([await contentOf(source, beta), await contentOf(target, gamma)]).toEqual(others);
    expect(await source.shops.find(DOMAIN)).toBeUndefined();
    expect(Object.values(await contentOf(source, alpha)).flat()).toEqual([]);
    expect(moved).toEqual({ ...alpha, id: moved.id });
  });

  test("keeps its keys, secrets, tokens, pages and due deliveries working", async () => {
    const { alpha, ...stores } = await twoDatabases(from, to);
    const { source, target } = stores;
    const secret = await source.webhooks.secretOf(alpha.id, 1);
    const intake = (await source.shops.intakeSecret(DOMAIN))?.secret;
    await move(stores);
    const shop = await found(target);
    expect(await target.keys.find(hashKey("alpha.myshopify.com"))).toMatchObject({ shopId: shop.id });
    expect(await source.keys.find(hashKey("alpha.myshopify.com"))).toBeUndefined();
    expect(await target.webhooks.secretOf(shop.id, 1)).toEqual(secret);
    expect((await target.shops.intakeSecret(DOMAIN))?.secret).toBe(intake);
    expect(await target.connections.tokens(shop.id)).toEqual(TOKENS);
    expect(await dueShopIds(source, START + 10_000)).not.toContain(alpha.id);
    expect(await dueShopIds(target, START + 10_000)).toContain(shop.id);
    expect(await commit(target, shop, [order(1, 1), customer(77)])).toMatchObject({ events: 0, changed: 1 });
    const claimed = await claim(target, shop, { share: 1_000 });
    expect(await record(target, claimed.map(succeeded))).toHaveLength(claimed.length);
  });
});

/** Fails at one call of an operation, before or after its effect, as a kill of the command does. */
function killedAt(stores: Stores, call: number, when: "before" | "after"): Stores {
  let calls = 0;
  const killed = () => new Error("killed");
  const dying = (moves: ShopMoves): ShopMoves =>
    new Proxy(moves, {
      get:
        (all, name: keyof ShopMoves) =>
        async (...given: unknown[]) => {
          calls += 1;
          if (calls > call || (calls === call && when === "before")) throw killed();
          const answer = await (all[name] as (...given: unknown[]) => unknown)(...given);
          if (calls === call) throw killed();
          return answer;
        },
    });
  const { source, target } = stores;
  return { source: { ...source, moves: dying(source.moves) }, target: { ...target, moves: dying(target.moves) } };
}

async function servedBy(stores: { source: Store; target: Store }): Promise<string[]> {
  const found = await Promise.all([stores.source, stores.target].map((store) => store.shops.find(DOMAIN)));
  return ["source", "target"].filter((_, index) => found[index] !== undefined);
}

describe.each(PAIRS)("$pair: an interrupted move of a shop", ({ from, to }) => {
  test.each(["before", "after"] as const)("is finished by the same command after a kill %s any step", async (when) => {
    const { alpha, ...stores } = await twoDatabases(from, to);
    const before = await contentOf(stores.source, alpha);
    let isMoved = false;
    for (let call = 1; !isMoved; call += 1) {
      isMoved = await moveShop(request(killedAt(stores, call, when))).catch(() => false);
      expect((await servedBy(stores)).length).toBeLessThan(2);
    }
    await removeShop(stores.source, DOMAIN);
    expect(await servedBy(stores)).toEqual(["target"]);
    const after = await contentOf(stores.target, await found(stores.target));
    expect(beforeMove(after)).toEqual(before);
    expect(after["audit"]).toHaveLength((before["audit"]?.length ?? 0) + 1);
  });

  test("lets the shop go on in its database if the target fails for good", async () => {
    const { alpha, ...stores } = await twoDatabases(from, to);
    const { source, target } = stores;
    const broken = { ...target, moves: { ...target.moves, activate: () => Promise.reject(new Error("broken")) } };
    const [thrown] = await failures([moveShop(request({ source, target: broken }))]);
    expect(thrown).toMatchObject({
      code: "failed",
      message: "the shop did not move, and is served as before: broken",
    });
    expect(await servedBy(stores)).toEqual(["source"]);
    expect(await commit(source, alpha, [customer(50)])).toMatchObject({ changed: 1 });
    expect(await cancelMove(request(stores))).toBe(true);
    await removeShop(target, DOMAIN);
    expect(await cancelMove(request(stores))).toBe(false);
    expect((await target.shops.list()).map(({ domain }) => domain)).toEqual(["gamma.myshopify.com"]);
    await move(stores);
    expect(await servedBy(stores)).toEqual(["target"]);
  });

  test("to a database that is lost is given up on either side", async () => {
    const stores = await twoDatabases(from, to);
    const { source, target } = stores;
    const dying = { ...source, moves: { ...source.moves, sending: () => Promise.reject(new Error("killed")) } };
    const lost = { ...target, moves: { ...target.moves, disarm: () => Promise.reject(new Error("lost")) } };
    await failures([moveShop(request({ source: dying, target: lost }))]);
    expect(await servedBy(stores)).toEqual([]);
    for (const store of [target, source]) {
      expect(await abandonMove(request({ source: store, target: store }))).toBe(true);
      await removeShop(target, DOMAIN);
      expect(await abandonMove(request({ source: store, target: store }))).toBe(false);
    }
    expect(await servedBy(stores)).toEqual(["source"]);
    await move(stores);
    expect(await servedBy(stores)).toEqual(["target"]);
  });

  test("that has ended cannot be cancelled", async () => {
    const stores = await twoDatabases(from, to);
    const { source, target } = stores;
    const dying = { ...source, moves: { ...source.moves, leave: () => Promise.reject(new Error("killed")) } };
    await failures([moveShop(request({ source: dying, target }))]);
    const third = await to.open();
    const elsewhere = request({ source, target: third.store });
    for (const thrown of await failures([cancelMove(request(stores)), moveShop(elsewhere), cancelMove(elsewhere)]))
      expect(thrown).toMatchObject({ code: "conflict" });
    expect(await servedBy(stores)).toEqual(["target"]);
    await move(stores);
    expect(await source.shops.removing()).toEqual([]);
  });

  test("that never began is not begun by cancelling it", async () => {
    const { source, target } = await twoDatabases(from, to);
    expect(await cancelMove(request({ source, target }))).toBe(false);
    expect(await source.moves.find(DOMAIN)).toBeUndefined();
  });
});

describe.each(PAIRS)("$pair: while a shop moves", ({ from, to }) => {
  test("what it takes in during the copy arrives too, and what it removes is removed", async () => {
    const { alpha, ...stores } = await twoDatabases(from, to);
    const { source, target } = stores;
    let isFirst = true;
    const { read } = source.moves;
    const moves: ShopMoves = {
      ...source.moves,
      async read(shop, table, range) {
        if (table === "orders" && isFirst) {
          isFirst = false;
          await commit(source, alpha, [customer(60), order(1, 1, { status: "FAILED" }), order(1, 2)]);
          await source.fields.update(alpha.id, () => []);
          await source.keys.revoke(alpha.id, apiKey(DOMAIN).id, START + 1);
        }
        return read(shop, table, range);
      },
    };
    await moveShop(request({ source: { ...source, moves }, target }));
    expect(isFirst).toBe(false);
    const shop = await found(target);
    const [left, arrived] = [await contentOf(source, alpha), await contentOf(target, shop)];
    for (const name of ["customers", "orders", "subscriptions", "deliveries", "shop_changes"])
      expect(arrived[name]).toEqual(left[name] as MovedRow[]);
    expect(await target.fields.list(shop.id)).toEqual([]);
    expect(await target.keys.find(hashKey(DOMAIN))).toBeUndefined();
  });

  test("its writes and deliveries stop for the end of the move, and reads go on", async () => {
    const { alpha, ...stores } = await twoDatabases(from, to);
    const { source, target } = stores;
    const seen: unknown[] = [];
    const sending: ShopMoves["sending"] = async (started, now) => {
      const before = await source.moves.sending(started, now);
      seen.push(before, await servedBy(stores), await source.moves.isAway(DOMAIN));
      seen.push((await source.keys.find(hashKey(DOMAIN)))?.shopId === alpha.id);
      seen.push(await source.inbox.receive([receipt(alpha, "late")], START));
      const refused = [
        commit(source, alpha, [customer(61)]),
        source.keys.revoke(alpha.id, apiKey(DOMAIN).id, START),
        source.keys.add(alpha.id, apiKey("new"), hashKey("new")),
        source.webhooks.rotateSecret(alpha.id, START),
      ];
      seen.push((await Promise.allSettled(refused)).map(({ status }) => status));
      seen.push(await source.connections.beginRenewal(alpha.id, "process", START, START + 1));
      seen.push(await claim(source, alpha));
      return source.moves.sending(started, now);
    };
    await moveShop(request({ source: { ...source, moves: { ...source.moves, sending } }, target }));
    expect(seen).toEqual([0, [], true, true, [false], Array(4).fill("rejected"), false, []]);
    expect(await source.moves.isAway(DOMAIN)).toBe(true);
    expect(await target.moves.isAway(DOMAIN)).toBe(false);
  });

  test("a delivery that is being sent, and tokens that are being renewed, end first", async () => {
    const { alpha, ...stores } = await twoDatabases(from, to);
    const { source, target } = stores;
    const now = () => START;
    await record(source, (await claim(source, alpha)).map(failed));
    const [claimed] = await claim(source, alpha, { now: START + 1_000, share: 1 });
    await source.connections.beginRenewal(alpha.id, "process", START, START + 1_000);
    const log: string[] = [];
    async function sleep(): Promise<void> {
      if (log.length === 0) await source.connections.endRenewal(alpha.id, "process");
      else if (claimed !== undefined) await record(source, [succeeded(claimed)]);
      log.push(log.length === 0 ? "renewed" : "sent");
    }
    await moveShop(request({ source, target }, { now, sleep }));
    expect(log).toEqual(["renewed", "sent"]);
    const shop = await found(target);
    const delivered = await target.deliveries.show(shop.id, claimed?.id ?? "");
    expect(delivered).toMatchObject({ status: "delivered", attempts: 2 });
  });

  test("a command that was paused overwrites nothing that a later one has copied", async () => {
    const { alpha, source, target } = await twoDatabases(from, to);
    const rename = (firstName: string) => commit(source, alpha, [customer(60, { firstName })]);
    const withMoves = (store: Store, more: Partial<ShopMoves>) => ({ ...store, moves: { ...store.moves, ...more } });
    const dying = withMoves(source, { stop: () => Promise.reject(new Error("killed")) });
    await rename("First");
    await failures([moveShop(request({ source: dying, target }))]);

    await rename("Second");
    const [paused, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = withMoves(target, {
      async write(...given) {
        if (!given.includes("customers")) return target.moves.write(...given);
        paused.resolve();
        await resumed.promise;
        await target.moves.write(...given);
        throw new Error("killed");
      },
    });
    const overtaken = failures([moveShop(request({ source, target: slow }))]);
    await paused.promise;
    await rename("Third");
    const later = withMoves(target, {
      async activate(...given) {
        resumed.resolve();
        await overtaken;
        return target.moves.activate(...given);
      },
    });
    expect(await moveShop(request({ source, target: later }))).toBe(true);
    const { customers } = await contentOf(target, await found(target));
    expect(JSON.stringify(customers)).toContain('\\"Third\\"');
  });

  test("two commands at once move it once", async () => {
    const { alpha, ...stores } = await twoDatabases(from, to);
    const before = await contentOf(stores.source, alpha);
    await Promise.allSettled([moveShop(request(stores)), moveShop(request(stores)), moveShop(request(stores))]);
    await move(stores).catch(() => undefined);
    expect(await servedBy(stores)).toEqual(["target"]);
    const after = await contentOf(stores.target, await found(stores.target));
    expect(beforeMove(after)).toEqual(before);
  });
});

describe.each(PAIRS)("$pair: a shop that has moved", ({ from, to }) => {
  test("keeps its checkpoints valid, also after it moved twice, and no other shop's", async () => {
    const { alpha, beta, ...stores } = await twoDatabases(from, to);
    const { source, target } = stores;
    const checkpoints = ({ shops, moves, ...store }: Store) =>
      createCheckpoints({ ...store, ...shops, ...moves, shopIds: async () => [], now: () => START });
    const scope = { shopId: alpha.id, resource: "orders", branch: "" } as const;
    const text = checkpoints(source).format(scope, 3);
    const foreign = checkpoints(source).format({ ...scope, shopId: beta.id }, 3);
    await move(stores);
    const moved = { ...scope, shopId: (await found(target)).id };
    expect(await checkpoints(target).parseFormer(moved, text)).toBe(3);
    expect(await checkpoints(target).parseFormer({ ...moved, resource: "customers" }, text)).toBe("not_issued");
    expect(await checkpoints(target).parseFormer(moved, foreign)).toBe("not_issued");
    expect(await checkpoints(target).parseFormer({ ...moved, shopId: moved.shopId + 1 }, text)).toBe("not_issued");
    const second = checkpoints(target).format(moved, 4);
    await move({ source: target, target: source });
    const back = { ...scope, shopId: (await found(source)).id };
    expect(await checkpoints(source).parseFormer(back, text)).toBe(3);
    expect(await checkpoints(source).parseFormer(back, second)).toBe(4);
    expect(await source.moves.isAway(DOMAIN)).toBe(false);
    expect(await target.moves.isAway(DOMAIN)).toBe(true);
  });

  test("is refused by a database that has a shop of one of its domains", async () => {
    const { source, target } = await twoDatabases(from, to);
    await source.shops.rename(DOMAIN, "delta.myshopify.com");
    const other = await shopWithEvents(target, "alpha");
    const domain = "delta.myshopify.com";
    const [thrown] = await failures([moveShop(request({ source, target }, { domain }))]);
    expect(thrown).toMatchObject({ code: "conflict" });
    expect(await source.shops.find(domain)).toBeDefined();
    expect(await target.shops.find(DOMAIN)).toEqual(other);
    expect(await moveShop(request({ source, target }, { domain: "nobody.myshopify.com" }))).toBe(false);
    expect(await moveShop(request({ source, target: source }, { domain })).catch(({ code }) => code)).toBe("conflict");
  });

  test("is found again by the same command, and only in the database that it moved to", async () => {
    const stores = await twoDatabases(from, to);
    await move(stores);
    expect(await moveShop(request(stores))).toBe(true);
    const third = await to.open();
    await shopWithEvents(third.store, "alpha");
    const [thrown] = await failures([moveShop(request({ source: stores.source, target: third.store }))]);
    expect(thrown).toMatchObject({ code: "conflict" });
    expect(await cancelMove(request(stores))).toBe(false);
  });

  test("may be added again where it was, and removed while it moves", async () => {
    const { source, target } = await twoDatabases(from, to);
    await move({ source, target });
    await shopWithEvents(source, "alpha");
    expect(await source.moves.isAway(DOMAIN)).toBe(false);
    const arm = () => Promise.reject(new Error("broken"));
    await removeShop(target, DOMAIN);
    await failures([moveShop(request({ source, target: { ...target, moves: { ...target.moves, arm } } }))]);
    expect(await removeShop(source, DOMAIN)).toBe(true);
    expect(await removeShop(target, DOMAIN)).toBe(true);
    expect(await servedBy({ source, target })).toEqual([]);
    expect([await source.shops.removing(), await target.shops.removing()]).toEqual([[], []]);
  });
});
