import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Position } from "../../src/domain/pages/cursor.ts";
import { RESOURCES, type Resource } from "../../src/domain/resources.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import { MAX_PAGE_BYTES } from "../../src/store/port/pages.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { cleanUp } from "../support/cleanup.ts";
import { customer, gid, line, order, subscription } from "../support/records.ts";
import { engines, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { allRows, commit, parsePage } from "./fixtures.ts";

const SORT = { subscriptions: "startedAt", customers: "createdAt", orders: "billedAt" } as const;
const PAGES = engines().flatMap((engine) => RESOURCES.map((resource) => ({ name: engine.name, engine, resource })));
const day = (n: number) => new Date(START + n * 86_400_000).toISOString();

/** Fills the shop with contracts, people and orders. Several contracts have the same date. */
async function fill(store: Store, shop: MirroredShop): Promise<void> {
  const contracts = [1, 2, 3, 4, 5, 6, 7].map((n) => subscription(n, { startedAt: day(Math.floor(n / 3)) }));
  await commit(store, shop, contracts.slice(0, 4), START);
  await commit(store, shop, contracts.slice(4), START + 1_000);
  await commit(
    store,
    shop,
    [1, 2, 3, 4, 5, 6, 7].map((n) => order(1, n, { billedAt: day(-Math.floor(n / 3)) })),
  );
}

async function positionOf(store: Store, shop: MirroredShop, resource: Resource, index: number): Promise<Position> {
  const row = (await allRows(store, shop, resource))[index] ?? {};
  return { at: Date.parse(String(row[SORT[resource]])), id: String(row["id"]) };
}

describe.each(PAGES)("$name: a page of $resource", ({ engine, resource }) => {
  test("is newest first, rows of one date by id descending, at every page size", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await fill(store, shop);
    const sortKey = (row: Record<string, unknown>) => `${row[SORT[resource]]} ${row["id"]}`;
    const expected = (await rows(resource))
      .map(({ json }) => JSON.parse(String(json)) as Record<string, unknown>)
      .toSorted((a, b) => (sortKey(a) < sortKey(b) ? 1 : -1));
    expect(new Set(expected.map((row) => row[SORT[resource]])).size).toBeGreaterThan(1);
    for (let limit = 1; limit <= expected.length + 1; limit += 1)
      expect(await allRows(store, shop, resource, limit)).toEqual(expected);
  });

  test("ends at its last row, and is marked as the last page if no row follows", async () => {
    const { store, shop } = await storeWithShop(engine);
    await fill(store, shop);
    const all = await allRows(store, shop, resource);
    for (const limit of [1, 3, all.length - 1]) {
      const page = await store.pages.list(shop.id, resource, limit, null);
      expect(page?.end).toEqual(await positionOf(store, shop, resource, limit - 1));
      const next = await store.pages.list(shop.id, resource, all.length - limit, page?.end ?? null);
      expect(parsePage(next?.rows ?? new Uint8Array())).toEqual(all.slice(limit));
      expect(next?.end).toBeNull();
    }
    for (const limit of [all.length, all.length + 1])
      expect((await store.pages.list(shop.id, resource, limit, null))?.end).toBeNull();
  });

  test("behind the last row has no rows", async () => {
    const { store, shop } = await storeWithShop(engine);
    await fill(store, shop);
    const last = await positionOf(store, shop, resource, 6);
    const page = await store.pages.list(shop.id, resource, 250, last);
    expect([page?.rows.byteLength, page?.end]).toEqual([0, null]);
  });

  test("of a shop without rows is empty, and refuses another shop's cursor", async () => {
    const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    await fill(store, alpha);
    const page = await store.pages.list(beta.id, resource, 250, null);
    expect([page?.rows.byteLength, page?.end]).toEqual([0, null]);
    expect(await store.pages.list(beta.id, resource, 250, await positionOf(store, alpha, resource, 0))).toBeUndefined();
  });

  test("behind a position that names no row of the shop and resource is refused", async () => {
    const { store, shop } = await storeWithShop(engine);
    await fill(store, shop);
    const { at, id } = await positionOf(store, shop, resource, 3);
    const others = RESOURCES.filter((other) => other !== resource);
    const wrong: Position[] = [
      { at: at + 1, id },
      { at: at - 1, id },
      { at, id: `${id.slice(0, -1)}${id.endsWith("a") ? "b" : "a"}` },
      { at: 0, id: "" },
      { at: Number.MAX_SAFE_INTEGER, id },
      ...(await Promise.all(others.map((other) => positionOf(store, shop, other, 3)))),
    ];
    for (const position of wrong)
      expect({ position, page: await store.pages.list(shop.id, resource, 3, position) }).toEqual({
        position,
        page: undefined,
      });
    expect(await store.pages.list(shop.id, resource, 3, { at, id })).toBeDefined();
  });
});

describe.each(engines())("$name: the bytes of a page", (engine) => {
  test("are the rows as they are stored, joined by commas", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const texts = ['{"id":"', ',{"id":"sub_', '\\",{"id":"', "é ☕ 𝒳", "\u2028\u0001", "]}"];
    await commit(
      store,
      shop,
      texts.map((title, n) => subscription(n + 1, { startedAt: day(-n), lines: [{ ...line, title }, line] })),
    );
    const stored = new Map(
      (await rows("subscriptions")).map(({ json, started_at }) => [Number(started_at), String(json)]),
    );
    const expected = texts.map((_, n) => stored.get(Date.parse(day(-n))));
    for (const limit of [1, 2, 4, 6]) {
      const page = await store.pages.list(shop.id, "subscriptions", limit, null);
      expect(Buffer.from(page?.rows ?? []).toString()).toBe(expected.slice(0, limit).join(","));
      const next = page?.end ? await store.pages.list(shop.id, "subscriptions", 250, page.end) : undefined;
      if (limit < texts.length) expect(Buffer.from(next?.rows ?? []).toString()).toBe(expected.slice(limit).join(","));
    }
  });

  test("are at most 8 MiB for any limit, and give each row once", async () => {
    const { store, shop } = await storeWithShop(engine);
    // Most rows have about 250 KiB. Every ninth row is small.
    const title = "x".repeat(1_000);
    const lines = (n: number) => Array.from({ length: n % 9 === 4 ? 1 : 210 }, () => ({ ...line, title }));
    for (let n = 0; n < 50; n += 10) {
      const ten = Array.from({ length: 10 }, (_, k) => subscription(n + k + 1, { lines: lines(n + k) }));
      await commit(store, shop, ten);
    }
    const expected = Array.from({ length: 50 }, (_, n) => gid.contract(n + 1)).sort();
    for (const limit of [250, 40, 34, 7]) {
      const found: unknown[] = [];
      let pages = 0;
      for (let after: Position | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
        const page = await store.pages.list(shop.id, "subscriptions", limit, after);
        expect(page?.rows.byteLength).toBeLessThanOrEqual(MAX_PAGE_BYTES);
        found.push(...parsePage(page?.rows ?? new Uint8Array()).map(({ shopifyId }) => shopifyId));
        after = page?.end ?? null;
        pages += 1;
      }
      expect(found.sort()).toEqual(expected);
      expect(pages).toBe(limit === 7 ? 8 : 2);
    }
  });

  test("hold dates from the year 0 to 9999 in their order", async () => {
    const { store, shop } = await storeWithShop(engine);
    const dates = [
      "9999-12-31T23:59:59.999Z",
      "1970-01-01T00:00:00.001Z",
      "1970-01-01T00:00:00.000Z",
      "1969-12-31T23:59:59.999Z",
      "0000-01-01T00:00:00.000Z",
    ];
    await commit(
      store,
      shop,
      dates.toReversed().map((startedAt, n) => subscription(n + 1, { startedAt })),
    );
    for (const limit of [1, 2, 5])
      expect((await allRows(store, shop, "subscriptions", limit)).map(({ startedAt }) => startedAt)).toEqual(dates);
  });
});

test.each(engines())("$name: paging returns each row of the start exactly once, even during writes", async (engine) => {
  const step = fc.record({
    limit: fc.integer({ min: 1, max: 4 }),
    n: fc.integer({ min: 1, max: 40 }),
    date: fc.integer({ min: 0, max: 5 }),
  });
  const property = fc.asyncProperty(
    fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 12 }),
    fc.array(step, { minLength: 30, maxLength: 30 }),
    async (dates, steps) => {
      const { store, shop } = await storeWithShop(engine);
      const gidsAtStart = dates.map((_, n) => gid.contract(n + 1)).sort();
      await commit(
        store,
        shop,
        dates.map((date, n) => subscription(n + 1, { startedAt: day(date) })),
      );
      const seen: unknown[] = [];
      let after: Position | null = null;
      for (const { limit, n, date } of steps) {
        const page = await store.pages.list(shop.id, "subscriptions", limit, after);
        seen.push(...parsePage(page?.rows ?? new Uint8Array()).map(({ shopifyId }) => shopifyId));
        after = page?.end ?? null;
        if (after === null) break;
        // Adds or changes a row between two pages.
        await commit(store, shop, [subscription(n, { startedAt: day(date), status: "PAUSED" }), customer(n)]);
      }
      expect(seen.filter((each) => gidsAtStart.includes(String(each))).sort()).toEqual(gidsAtStart);
      expect(new Set(seen).size).toBe(seen.length);
      await cleanUp();
    },
  );
  await fc.assert(property, { numRuns: 25 });
});
