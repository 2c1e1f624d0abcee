import { describe, expect, test } from "bun:test";
import { abandonMove, cancelMove, moveShop } from "../../src/store/copy/move-shop.ts";
import type { ShopMoves } from "../../src/store/port/shop-moves.ts";
import { customer } from "../support/records.ts";
import { commit, failures, removeShop } from "./fixtures.ts";
import {
  beforeMove,
  contentOf,
  DOMAIN,
  found,
  MIXED_PAIRS,
  move,
  request,
  type Stores,
  servedBy,
  twoDatabases,
  withMoves,
} from "./moving-shops.ts";

/**
 * Returns stores whose operations of moves fail from call number `call` on, as if the command was killed. That call
 * fails before or after its effect.
 */
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

describe.each(MIXED_PAIRS)("$pair: an interrupted move of a shop", ({ from, to }) => {
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
    const broken = withMoves(target, { activate: () => Promise.reject(new Error("broken")) });
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
    const dying = withMoves(source, { sending: () => Promise.reject(new Error("killed")) });
    const lost = withMoves(target, { disarm: () => Promise.reject(new Error("lost")) });
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
    const dying = withMoves(source, { leave: () => Promise.reject(new Error("killed")) });
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
