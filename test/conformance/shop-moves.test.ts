import { describe, expect, test } from "bun:test";
import { hashKey } from "../../src/domain/key.ts";
import { createCheckpoints } from "../../src/domain/pages/checkpoint.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { cancelMove, moveShop } from "../../src/store/copy/move-shop.ts";
import type { Departure, MovedRow, NumberSpans, ShopMoves } from "../../src/store/port/shop-moves.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { customer, order } from "../support/records.ts";
import { claim, claimOne, dueShopIds, failed, record, succeeded } from "./delivery-fixtures.ts";
import { engines } from "./engines.ts";
import { apiKey, commit, failures, receipt, removeShop, shopWithEvents, TOKENS } from "./fixtures.ts";
import {
  beforeMove,
  contentOf,
  DOMAIN,
  found,
  move,
  PAIRS,
  request,
  servedBy,
  twoDatabases,
  withMoves,
} from "./moving-shops.ts";

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

describe.each(PAIRS)("$pair: while a shop moves", ({ from, to }) => {
  test("what it takes in during the copy arrives too, and what it removes is removed", async () => {
    const { alpha, ...stores } = await twoDatabases(from, to);
    const { source, target } = stores;
    expect(await record(source, [succeeded(await claimOne(source, alpha))])).toHaveLength(1);
    let [isFirst, isPruned] = [true, false];
    const { readBatch } = source.moves;
    const moves: Partial<ShopMoves> = {
      async readBatch(shop, table, ...given) {
        if (table === "orders" && isFirst) {
          isFirst = false;
          await commit(source, alpha, [customer(60), order(1, 1, { status: "FAILED" }), order(1, 2)]);
          await source.fields.update(alpha.id, () => []);
          await source.keys.revoke(alpha.id, apiKey(DOMAIN).id, START + 1);
        }
        if (table === "audit" && !isPruned) {
          isPruned = true;
          await source.deliveries.prune(START + 1_000_000, 0);
        }
        return readBatch(shop, table, ...given);
      },
    };
    await moveShop(request({ source: withMoves(source, moves), target }));
    expect([isFirst, isPruned]).toEqual([false, true]);
    const shop = await found(target);
    const [left, arrived] = [await contentOf(source, alpha), beforeMove(await contentOf(target, shop))];
    for (const name of ["customers", "orders", "subscriptions", "deliveries", "attempts", "shop_changes"])
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
    await moveShop(request({ source: withMoves(source, { sending }), target }));
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

describe.each(engines())("$name: shops that arrive at once", (engine) => {
  test("get numbers that no other shop has", async () => {
    const [source, { store: target }] = [await engine.open(), await engine.open()];
    const names = Array.from({ length: 8 }, (_, n) => `shop-${n}`);
    const departures: Departure[] = [];
    for (const name of names) {
      const { domain } = await shopWithEvents(source.store, name);
      const departure = await source.store.moves.begin(domain, `move_${name}`, "target");
      if (departure !== undefined) departures.push(departure);
    }
    // Larger shops come first, so that this test notices a wrong reservation. A wrong reservation for a smaller shop
    // could then end below an earlier reservation.
    const sizes = departures.map((departure, index) => ({ ...departure, spans: wider(departure.spans, 8 - index) }));
    const arrived = await Promise.all(sizes.map((departure) => target.moves.arrive(departure, START)));
    const ranges = arrived.map(({ offsets }, index) => {
      const { low = 0, high = 0 } = sizes[index]?.spans["deliveries"] ?? {};
      return { from: low + (offsets["deliveries"] ?? 0), to: high + (offsets["deliveries"] ?? 0) };
    });
    ranges.sort((a, b) => a.from - b.from);
    for (const [index, { to }] of ranges.slice(0, -1).entries()) expect(ranges[index + 1]?.from).toBeGreaterThan(to);
    const later = await shopWithEvents(target, "later");
    const { spans } = (await target.moves.begin(later.domain, "move_later", "elsewhere")) as Departure;
    expect(spans["deliveries"]?.low).toBeGreaterThan(ranges.at(-1)?.to ?? 0);
  });
});

/** Makes a shop look as if `millions` million rows of other shops lay between its own rows. */
function wider(spans: NumberSpans, millions: number): NumberSpans {
  const widened = Object.entries(spans).map(([table, { low, high }]) => [table, { low, high: high + millions * 1e6 }]);
  return Object.fromEntries(widened);
}

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
    const [same] = await failures([moveShop(request({ source, target: source }, { domain }))]);
    expect(same).toMatchObject({ code: "conflict", message: expect.stringContaining("name another one") });
    expect(await source.moves.find(domain)).toBeUndefined();
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

  test("is refused by a database where another shop has one of its API keys", async () => {
    const { alpha, source, target } = await twoDatabases(from, to);
    const gamma = (await target.shops.find("gamma.myshopify.com")) as Shop;
    await target.keys.add(gamma.id, apiKey("imported"), hashKey("imported"));
    await source.keys.add(alpha.id, apiKey("of alpha"), hashKey("imported"));
    expect(await failures([moveShop(request({ source, target }))])).toMatchObject([
      { message: "a row of `api_keys` has the same key as a row of another shop in the other database" },
    ]);
    expect(await servedBy({ source, target })).toEqual(["source"]);
    expect(await target.keys.find(hashKey("imported"))).toMatchObject({ shopId: gamma.id });
  });

  test("may be added again where it was, and removed while it moves", async () => {
    const { source, target } = await twoDatabases(from, to);
    await move({ source, target });
    await shopWithEvents(source, "alpha");
    expect(await source.moves.isAway(DOMAIN)).toBe(false);
    const arm = () => Promise.reject(new Error("broken"));
    await removeShop(target, DOMAIN);
    await failures([moveShop(request({ source, target: withMoves(target, { arm }) }))]);
    expect(await removeShop(source, DOMAIN)).toBe(true);
    expect(await removeShop(target, DOMAIN)).toBe(true);
    expect(await servedBy({ source, target })).toEqual([]);
    expect([await source.shops.removing(), await target.shops.removing()]).toEqual([[], []]);
  });
});
