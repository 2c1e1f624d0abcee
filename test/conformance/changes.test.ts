import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { RowFilter } from "../../src/domain/pages/row-filter.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import { RESOURCES, type Resource } from "../../src/domain/resources.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { mirrorRecord } from "../support/arbitrary-records.ts";
import { cleanUp } from "../support/cleanup.ts";
import { customer, gid, order, subscription } from "../support/records.ts";
import { applySearched } from "../support/searched.ts";
import { engines, storeWithShop } from "./engines.ts";
import { addShop, allRows, changedRows, commit, parsePage, removeShop } from "./fixtures.ts";

/** The length of a span of changes. */
const SPAN_MS = 30_000;
/** Time between two steps of the property test. */
const STEP_MS = 9_000;

type Row = Record<string, unknown>;

/** A copy of one resource. It reads pages of a walk first, then pages of changes. */
class Copy {
  readonly rows = new Map<string, Row>();
  private checkpoint = 0;
  private cursor: { at: number; id: string } | null = null;
  private isWalked = false;

  private readonly shop: MirroredShop;
  private readonly resource: Resource;

  constructor(shop: MirroredShop, resource: Resource) {
    this.shop = shop;
    this.resource = resource;
  }

  /** Reads one page. @returns whether it was the last page for now */
  async step(store: Store, limit: number): Promise<boolean> {
    if (this.isWalked) return this.takeChanges(store, limit);
    const isFirst = this.cursor === null;
    const page = await store.pages.list(this.shop.id, this.resource, limit, this.cursor);
    if (page === undefined) throw new Error("the page's own cursor was refused");
    if (isFirst) this.checkpoint = page.changeCount;
    this.put(page.rows);
    this.cursor = page.end;
    this.isWalked = page.end === null;
    return false;
  }

  private async takeChanges(store: Store, limit: number): Promise<boolean> {
    const page = await store.pages.changes(this.shop.id, this.resource, {}, limit, this.checkpoint);
    this.put(page.rows);
    this.checkpoint = page.reached;
    return !page.hasMore;
  }

  private put(rows: Uint8Array): void {
    for (const row of parsePage(rows)) this.rows.set(String(row["id"]), row);
  }
}

describe.each(engines())("$name: changes", (engine) => {
  test("are listed in their order, each row once with its newest state", async () => {
    const { store, shop } = await storeWithShop(engine);
    await commit(store, shop, [customer(1), customer(2), customer(3)]);
    await commit(store, shop, [customer(1, { firstName: "Ada" })]);
    const rows = await changedRows(store, shop, "customers");
    expect(rows.map(({ shopifyId }) => shopifyId)).toEqual([gid.customer(2), gid.customer(3), gid.customer(1)]);
    expect(rows.at(-1)).toMatchObject({ firstName: "Ada" });
    expect(await changedRows(store, await addShop(store, "beta"), "customers")).toEqual([]);
  });

  test("continue where a page ended, and their position passes changes of other resources", async () => {
    const { store, shop } = await storeWithShop(engine);
    await commit(store, shop, [customer(1), customer(2), customer(3)]);
    const first = await store.pages.changes(shop.id, "customers", {}, 2, 0);
    expect([parsePage(first.rows).length, first.reached, first.hasMore, first.changeCount]).toEqual([2, 2, true, 3]);
    const second = await store.pages.changes(shop.id, "customers", {}, 2, first.reached);
    expect([parsePage(second.rows).length, second.reached, second.hasMore]).toEqual([1, 3, false]);
    await commit(store, shop, [subscription(1)]);
    const { changeCount } = await store.pages.changes(shop.id, "customers", {}, 250, 3);
    const orders = await store.pages.changes(shop.id, "orders", {}, 250, 0);
    expect([changeCount, orders.reached, orders.rows.byteLength]).toEqual([changeCount, changeCount, 0]);
  });

  test("of a resource have a last number, which every read of that resource has, and no change of another raises", async () => {
    const { store, shop } = await storeWithShop(engine);
    const { pages } = store;
    const all: RowFilter = { statuses: ["ACTIVE", "PAID"] };
    const lastOf = async (resource: Resource) => {
      const [row] = await allRows(store, shop, resource);
      const id = String(row?.["id"] ?? "");
      const reads = [
        await pages.list(shop.id, resource, 1, null),
        await pages.listFiltered(shop.id, resource, resource === "customers" ? {} : all, 1, null),
        await pages.changes(shop.id, resource, {}, 1, 0),
        ...(row === undefined ? [] : [await pages.find(shop.id, resource, { id })]),
      ];
      const numbers = new Set(reads.map((read) => read?.lastChange));
      expect(numbers.size).toBe(1);
      return [...numbers][0] ?? -1;
    };
    const lasts = async () => [await lastOf("customers"), await lastOf("subscriptions"), await lastOf("orders")];
    expect(await lasts()).toEqual([0, 0, 0]);
    await commit(store, await addShop(store, "beta"), [subscription(1), order(1, 1)]);
    expect(await lasts()).toEqual([0, 0, 0]);
    await commit(store, shop, [customer(1), subscription(1), order(1, 1)]);
    const [customers = 0, subscriptions = 0, orders = 0] = await lasts();
    expect(Math.min(customers, subscriptions, orders)).toBeGreaterThan(0);
    await commit(store, shop, [order(1, 1, { discountCents: 1 })]);
    const [sameCustomers, sameSubscriptions, later] = await lasts();
    expect([sameCustomers, sameSubscriptions]).toEqual([customers, subscriptions]);
    expect(later).toBeGreaterThan(orders);
    const { changeCount } = await pages.changes(shop.id, "customers", {}, 1, 0);
    expect(later).toBe(changeCount);
  });

  test("of a redacted person are a changed customer", async () => {
    const { store, shop } = await storeWithShop(engine);
    await commit(store, shop, [customer(1, { email: "ada@example.com" }), customer(2)]);
    await commit(store, shop, [{ type: "redaction", shopifyId: gid.customer(1), asOf: START }]);
    expect(await changedRows(store, shop, "customers", { after: 2 })).toMatchObject([
      { shopifyId: gid.customer(1), email: null },
    ]);
  });

  test("since a time begin up to a minute before it, and never after it, whatever the clock did", async () => {
    const { store, shop } = await storeWithShop(engine);
    const before = (spans: number) => store.pages.changeBefore(shop.id, START + spans * SPAN_MS);
    expect(await before(0)).toBe(0);
    await commit(store, shop, [customer(1)], START);
    await commit(store, shop, [customer(2)], START + 2 * SPAN_MS);
    // The clock was set back.
    await commit(store, shop, [customer(3)], START + SPAN_MS);
    await commit(store, shop, [customer(4)], START + 4 * SPAN_MS + 1);
    expect(await Promise.all([-4, 1, 2, 3, 4, 5, 6].map(before))).toEqual([0, 0, 1, 1, 3, 3, 4]);
    // The time of this commit is just before span 6, but a slow commit may become visible only in span 6. So the
    // changes since span 6 begin after change 4, and include change 5.
    await commit(store, shop, [customer(5)], START + 6 * SPAN_MS - 1);
    expect(await before(6)).toBe(4);
  });

  test("are removed with their shop", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const kept = await addShop(store, "beta");
    for (const each of [shop, kept]) await commit(store, each, [customer(1), subscription(1), order(1, 1)]);
    const numbers = async () => (await rows("changes")).filter((row) => row["shop_id"] === shop.id).length;
    expect(await numbers()).toBe(3);
    await removeShop(store, shop.domain);
    expect([await numbers(), (await rows("changes")).length]).toEqual([0, 3]);
  });

  test("keep a copy that equals the mirror, in any order of pages, writes and restarts, by two processes", async () => {
    const page = fc.record({ resource: fc.constantFrom(...RESOURCES), limit: fc.integer({ min: 1, max: 4 }) });
    const step = fc.record({
      isSecond: fc.boolean(),
      action: fc.oneof(
        { weight: 6, arbitrary: fc.array(mirrorRecord, { minLength: 1, maxLength: 5 }) },
        { weight: 9, arbitrary: page },
        { weight: 1, arbitrary: fc.constant("restart" as const) },
      ),
    });
    async function keepCopies(steps: (typeof step extends fc.Arbitrary<infer S> ? S : never)[]): Promise<void> {
      const { store, reopen } = await engine.open();
      const stores = [store, await reopen()];
      const shop = await addShop(store);
      const copies = new Map(RESOURCES.map((resource) => [resource, new Copy(shop, resource)]));
      const counts: { at: number; before: number }[] = [];
      for (const [index, { isSecond, action }] of steps.entries()) {
        const at = START + index * STEP_MS;
        const used = stores[isSecond ? 1 : 0] as Store;
        if (action === "restart") stores[isSecond ? 1 : 0] = await reopen();
        else if (!Array.isArray(action)) await copies.get(action.resource)?.step(used, action.limit);
        else {
          counts.push({ at, before: (await used.pages.changes(shop.id, "orders", {}, 1, 0)).changeCount });
          await applySearched(used.mirror, [{ shop, records: action as MirrorRecord[] }], at);
        }
      }
      for (const [resource, copy] of copies) {
        while (!(await copy.step(store, 3)));
        const mirrored = await allRows(store, shop, resource);
        expect(copy.rows).toEqual(new Map(mirrored.map((row) => [String(row["id"]), row])));
      }
      // `changeBefore` never skips a change since the given time, and begins at most a minute too early.
      for (const { at, before } of counts) {
        const found = await store.pages.changeBefore(shop.id, at);
        const earliest = counts.find((each) => each.at >= at - 2 * SPAN_MS)?.before ?? 0;
        expect([found <= before, found >= earliest]).toEqual([true, true]);
      }
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), keepCopies).afterEach(cleanUp), {
      numRuns: engine.name === "sqlite" ? 30 : 12,
    });
  });
});

test.each(engines())("$name: a shop that only earlier versions changed lists all changes", async (engine) => {
  const { store, shop } = await storeWithShop(engine);
  expect(await store.pages.changeBefore(shop.id, START)).toBe(0);
});

test.each(engines())("$name: the epoch stays with the database", async (engine) => {
  const { store, reopen } = await engine.open();
  expect((await reopen()).epoch).toEqual(store.epoch);
  expect((await engine.open()).store.epoch).not.toEqual(store.epoch);
});
