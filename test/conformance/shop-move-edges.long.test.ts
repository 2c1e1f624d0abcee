import { describe, expect, test } from "bun:test";
import { hashKey } from "../../src/domain/key.ts";
import { createCheckpoints } from "../../src/domain/pages/checkpoint.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { cancelMove, moveShop } from "../../src/store/copy/move-shop.ts";
import type { MovedRow, ShopMoves } from "../../src/store/port/shop-moves.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { customer, order, subscription } from "../support/records.ts";
import { claimOne, record, succeeded } from "./delivery-fixtures.ts";
import { addShop, commit, failures, receipt, removeShop, shopWithEvents } from "./fixtures.ts";
import {
  contentOf,
  DOMAIN,
  found,
  MIXED_PAIRS,
  move,
  request,
  servedBy,
  twoDatabases,
  withMoves,
} from "./moving-shops.ts";

const DELTA = "delta.myshopify.com";
const GAMMA = "gamma.myshopify.com";
const HOUR_MS = 3_600_000;
const killed = () => Promise.reject(new Error("killed"));

function checkpointsOf({ shops, moves, ...store }: Store, epoch = store.epoch) {
  return createCheckpoints({ ...store, ...shops, ...moves, epoch, shopIds: async () => [], now: () => START });
}

/** Reads the row of a shop's counters. */
async function counters({ moves }: Store, { id }: Pick<Shop, "id">) {
  const [row = []] = await moves.read({ id, offsets: {} }, "shop_changes", {});
  return { changeCount: Number(row[1]), branch: String(row.at(-1)) };
}

describe.each(MIXED_PAIRS)("$pair: a move", ({ from, to }) => {
  test("does not make a shop without a domain seem away", async () => {
    const { source, target } = await twoDatabases(from, to);
    await move({ source, target });
    expect(await target.moves.isAway("")).toBe(false);
  });

  test("away is forgotten if another shop gets the domain", async () => {
    const { source, target } = await twoDatabases(from, to);
    await move({ source, target });
    expect(await source.moves.isAway(DOMAIN)).toBe(true);
    await source.shops.rename("beta.myshopify.com", DOMAIN);
    expect(await source.moves.isAway(DOMAIN)).toBe(false);
  });

  test("hides the copy from API keys until it is activated, and after it was given up", async () => {
    const stores = await twoDatabases(from, to);
    const { source, target } = stores;
    await failures([moveShop(request({ source: withMoves(source, { stop: killed }), target }))]);
    expect(await target.keys.find(hashKey(DOMAIN))).toBeUndefined();
    expect(await source.keys.find(hashKey(DOMAIN))).toBeDefined();
    await cancelMove(request(stores));
    expect(await target.keys.find(hashKey(DOMAIN))).toBeUndefined();
  });

  test("sends no e-mail about the arriving copy", async () => {
    const { source, target } = await twoDatabases(from, to);
    await failures([moveShop(request({ source: withMoves(source, { stop: killed }), target }))]);
    const later = START + HOUR_MS;
    const domains: string[] = [];
    for (let n = 0; n < 10; n += 1) {
      const claimed = await target.alerts.claimNotice(later, () => later + HOUR_MS);
      if (claimed !== undefined) domains.push(claimed.shop.domain);
    }
    expect(domains).toContain(GAMMA);
    expect(domains).not.toContain(DOMAIN);
  });

  test("takes a shop that was renamed", async () => {
    const { source, target } = await twoDatabases(from, to);
    await source.shops.rename(DOMAIN, DELTA);
    expect(await moveShop(request({ source, target }, { domain: DELTA }))).toBe(true);
    expect(await target.shops.find(DELTA)).toMatchObject({ domain: DELTA, firstDomain: DOMAIN });
    expect((await target.shops.intakeSecret(DELTA))?.secret).toStartWith("intake_");
  });

  test.each([
    ["finishes", moveShop],
    ["gives up", cancelMove],
  ])(
    "that was killed after the activation does not bring back a shop that has left: a command %s it",
    async (_, end) => {
      const { source, target } = await twoDatabases(from, to);
      const { store: third } = await from.open();
      await failures([moveShop(request({ source: withMoves(source, { leave: killed }), target }))]);
      await move({ source: target, target: third });
      await failures([end(request({ source, target }))]);
      expect(await servedBy({ source, target })).toEqual([]);
      expect(await third.shops.find(DOMAIN)).toBeDefined();
    },
  );

  test("refuses a shop that comes from the other database at the same time", async () => {
    const { source, target } = await twoDatabases(from, to);
    const busy = await shopWithEvents(target, "busy");
    const refused: unknown[] = [];
    const arm: ShopMoves["arm"] = async (...given) => {
      await target.moves.arm(...given);
      if (refused.length > 0) return;
      refused.push(...(await failures([moveShop(request({ source: target, target: source }, { domain: GAMMA }))])));
      const alpha = await found(source);
      for (let n = 500; n < 520; n += 1)
        for (const [store, shop] of [
          [source, alpha],
          [target, busy],
        ] as const)
          await commit(store, shop, [subscription(1), order(1, n)]);
    };
    expect(await moveShop(request({ source, target: withMoves(target, { arm }) }))).toBe(true);
    expect(refused).toMatchObject([{ code: "conflict", message: expect.stringContaining(`${DOMAIN} is leaving`) }]);
    const moved = await found(target);
    for (let n = 1_000; n < 1_020; n += 1) await commit(target, moved, [order(1, n)]);
  });

  test("gives numbers of its own to rows that a shop adds after another shop came to its database", async () => {
    const { source, target } = await twoDatabases(from, to);
    await moveShop(request({ source: target, target: source }, { domain: GAMMA }));
    const busy = await shopWithEvents(target, "busy");
    let isFirst = true;
    const arm: ShopMoves["arm"] = async (...given) => {
      await target.moves.arm(...given);
      if (!isFirst) return;
      isFirst = false;
      const alpha = await found(source);
      for (let n = 500; n < 520; n += 1) await commit(source, alpha, [order(1, n)]);
      for (let n = 500; n < 520; n += 1) await commit(target, busy, [subscription(1), order(1, n)]);
    };
    expect(await moveShop(request({ source, target: withMoves(target, { arm }) }))).toBe(true);
    for (let n = 520; n < 540; n += 1) await commit(target, busy, [order(1, n)]);
  });

  test("takes the first rows of tables that never had a row", async () => {
    const [{ store: source }, { store: target }] = [await from.open(), await to.open()];
    const alpha = await addShop(source, "alpha");
    await target.inbox.receive([receipt(await addShop(target, "gamma"), "of gamma")], START);
    let isFirst = true;
    const arm: ShopMoves["arm"] = async (...given) => {
      await target.moves.arm(...given);
      if (isFirst) await source.inbox.receive([receipt(alpha, "of alpha")], START);
      isFirst = false;
    };
    expect(await moveShop(request({ source, target: withMoves(target, { arm }) }))).toBe(true);
  });

  test("of a shop that is removed meanwhile leaves no copy", async () => {
    const { source, target, there } = await twoDatabases(from, to);
    const stop: ShopMoves["stop"] = async (...given) => {
      await removeShop(source, DOMAIN);
      return source.moves.stop(...given);
    };
    await failures([moveShop(request({ source: withMoves(source, { stop }), target }))]);
    expect((await there.rows("shop_moves")).filter(({ state }) => state === "arriving")).toEqual([]);
    expect((await target.shops.removing()).map(({ domain }) => domain)).toEqual([DOMAIN]);
  });

  test("refuses the removal of a shop that it has stopped", async () => {
    const { source, target } = await twoDatabases(from, to);
    let refused: unknown[] = [];
    const sending: ShopMoves["sending"] = async (...given) => {
      refused = await failures([source.shops.beginRemoval(DOMAIN, START)]);
      return source.moves.sending(...given);
    };
    expect(await moveShop(request({ source: withMoves(source, { sending }), target }))).toBe(true);
    expect(refused).toMatchObject([{ code: "conflict" }]);
  });

  test("keeps the answer `restored` for checkpoints from before a restore of the first database", async () => {
    const { alpha, source, target } = await twoDatabases(from, to);
    const former = new Uint8Array(32).fill(7);
    const scope = { shopId: alpha.id, resource: "orders", branch: "" } as const;
    const text = checkpointsOf(source, former).format(scope, 3);
    const restored = { ...source, formerEpochs: [new Uint8Array(32).fill(8), former] };
    expect(await checkpointsOf(restored).parseFormer(scope, text)).toBe("restored");
    await move({ source: restored, target });
    const moved = { ...scope, shopId: (await found(target)).id };
    expect(await checkpointsOf(target).parseFormer(moved, text)).toBe("restored");
  });

  test("keeps a checkpoint refused whose change was lost in a failover of the first database", async () => {
    const { alpha, source, target } = await twoDatabases(from, to);
    const lost = (await counters(source, alpha)).changeCount + 5;
    const text = checkpointsOf(source).format({ shopId: alpha.id, resource: "orders", branch: "" }, lost);
    await move({ source, target });
    const shop = await found(target);
    for (let n = 700; n < 710; n += 1) await commit(target, shop, [customer(n)]);
    const { branch } = await counters(target, shop);
    const scope = { shopId: shop.id, resource: "orders", branch } as const;
    expect(await checkpointsOf(target).parseFormer(scope, text)).toBe("restored");
  });

  test("back that is given up keeps the knowledge that the shop is away", async () => {
    const { source, target } = await twoDatabases(from, to);
    await move({ source, target });
    await failures([moveShop(request({ source: withMoves(target, { stop: killed }), target: source }))]);
    await cancelMove(request({ source: target, target: source }));
    await removeShop(source, DOMAIN);
    expect(await source.moves.isAway(DOMAIN)).toBe(true);
  });

  test("is refused if the shop gets the first domain of another shop meanwhile", async () => {
    const { source, target } = await twoDatabases(from, to);
    await target.shops.rename(GAMMA, "gamma-2.myshopify.com");
    const arm: ShopMoves["arm"] = async (...given) => {
      await target.moves.arm(...given);
      await source.shops.rename(DOMAIN, GAMMA).catch(() => undefined);
    };
    expect(await failures([moveShop(request({ source, target: withMoves(target, { arm }) }))])).toMatchObject([
      { code: "conflict", message: expect.stringContaining("has the shop gamma-2.myshopify.com already") },
    ]);
    const named = (await target.shops.list()).filter(({ domain, firstDomain }) =>
      [domain, firstDomain].includes(GAMMA),
    );
    expect(named).toHaveLength(1);
    expect(await source.shops.find(GAMMA)).toBeDefined();
  });

  test("that is killed while it removes a delivery removes the delivery's attempts too", async () => {
    const { alpha, source, target } = await twoDatabases(from, to);
    expect(await record(source, [succeeded(await claimOne(source, alpha))])).toHaveLength(1);
    let isPruned = false;
    const pruning = withMoves(source, {
      async readBatch(shop, table, ...given) {
        if (table === "audit" && !isPruned) await source.deliveries.prune(START + HOUR_MS, 0);
        isPruned ||= table === "audit";
        return source.moves.readBatch(shop, table, ...given);
      },
    });
    let writes = 0;
    const failing = withMoves(target, {
      async write(...given) {
        if (isPruned && ["attempts", "deliveries"].includes(given[2])) writes += 1;
        return writes === 2 ? killed() : target.moves.write(...given);
      },
    });
    await expect(moveShop(request({ source: pruning, target: failing }))).rejects.toThrow("killed");
    await moveShop(request({ source, target }));
    const [left, arrived] = [await contentOf(source, alpha), await contentOf(target, await found(target))];
    expect(arrived["attempts"]).toEqual(left["attempts"] as MovedRow[]);
  });

  test("reads large rows a few at a time", async () => {
    const [{ store: source }, { store: target }] = [await from.open(), await to.open()];
    const alpha = await addShop(source, "alpha");
    const receive = (count: number, body: string) =>
      source.inbox.receive(
        Array.from({ length: count }, (_, n) => ({ ...receipt(alpha, `${body.length} ${n}`), body })),
        START,
      );
    await receive(30, "{}");
    await receive(30, JSON.stringify("a".repeat(1_000_000)));
    const batches: number[] = [];
    const counted = (store: Store) =>
      withMoves(store, {
        async readBatch(...given) {
          const batch = await store.moves.readBatch(...given);
          batches.push(JSON.stringify(batch.rows).length);
          return batch;
        },
      });
    expect(await moveShop(request({ source: counted(source), target: counted(target) }))).toBe(true);
    expect(batches.filter((size) => size > 4_000_000).length).toBeGreaterThan(6);
    expect(Math.max(...batches)).toBeLessThan(7_000_000);
    expect((await target.inbox.list((await found(target)).id, { limit: 100 })).length).toBe(60);
  });
});
