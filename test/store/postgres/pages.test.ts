import { expect, test } from "bun:test";
import { SQL } from "bun";
import type { Position } from "../../../src/domain/pages/cursor.ts";
import { MAX_PAGE_BYTES } from "../../../src/store/port/pages.ts";
import { parsePage } from "../../conformance/fixtures.ts";
import { START } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { hasPostgres } from "../../support/postgres-server.ts";
import { databaseWithTables, openStoreAt } from "../../support/postgres-store.ts";
import { subscription } from "../../support/records.ts";

const KIB = 1_024;

/** A shop with a subscription of each size. Rows that were copied from an older version can have any size. */
async function shopWithRows(sizes: readonly number[]) {
  const url = await databaseWithTables();
  const store = await openStoreAt(url);
  const shop = await store.shops.add({ domain: "alpha.myshopify.com", plan: "pro", currency: "USD" }, START);
  await store.mirror.applyRecords([{ shop, records: sizes.map((_, n) => subscription(n)) }], START, []);
  const sql = new SQL(url, { max: 1 });
  afterTest(() => sql.close());
  const ids: string[] = [];
  for (const [n, { id, json }] of (await sql.unsafe("SELECT id, json FROM subscriptions ORDER BY id")).entries()) {
    const row = JSON.parse(json);
    row.lines[0].title = "";
    row.lines[0].title = "x".repeat(Math.max(0, (sizes[n] ?? 0) - JSON.stringify(row).length));
    await sql.unsafe("UPDATE subscriptions SET json = $1 WHERE id = $2", [JSON.stringify(row), id]);
    ids.unshift(id);
  }

  async function walk(limit: number) {
    const found: unknown[] = [];
    const bytes: number[] = [];
    for (let after: Position | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
      const page = await store.pages.list(shop.id, "subscriptions", limit, after);
      found.push(...parsePage(page?.rows ?? new Uint8Array()).map(({ id }) => id));
      bytes.push(page?.rows.byteLength ?? 0);
      after = page?.end ?? null;
    }
    return { found, bytes };
  }

  /** Reads all ids in the order of the changes, in pages. */
  async function walkChanges() {
    const pages: unknown[][] = [];
    for (let after = 0, hasMore = true; hasMore; ) {
      const page = await store.pages.changes(shop.id, "subscriptions", {}, 250, after);
      pages.push(parsePage(page.rows).map(({ id }) => id));
      [after, hasMore] = [page.reached, page.hasMore];
    }
    return pages;
  }

  /** Reads all ids of a list with a filter, in pages. */
  async function walkFiltered() {
    const pages: unknown[][] = [];
    for (let after: Position | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
      const page = await store.pages.listFiltered(shop.id, "subscriptions", { statuses: ["ACTIVE"] }, 250, after);
      pages.push(parsePage(page?.rows ?? new Uint8Array()).map(({ id }) => id));
      after = page?.end ?? null;
    }
    return pages;
  }
  return { walk, walkChanges, walkFiltered, ids };
}

test.skipIf(!hasPostgres())("a row above 8 MiB is a page of its own", async () => {
  const { walk, walkChanges, walkFiltered, ids } = await shopWithRows([
    0,
    9_000 * KIB,
    0,
    9_000 * KIB,
    9_000 * KIB,
    0,
    0,
  ]);
  expect((await walkFiltered()).flat()).toEqual(ids);
  expect((await walkChanges()).flat().toSorted()).toEqual(ids.toSorted());
  for (const limit of [1, 3, 250]) {
    const { found, bytes } = await walk(limit);
    expect(found).toEqual(ids);
    expect(bytes.filter((each) => each > MAX_PAGE_BYTES)).toHaveLength(3);
    expect(Math.max(...bytes)).toBeLessThanOrEqual(9_000 * KIB);
  }
});

test.skipIf(!hasPostgres())(
  "a page of rows just below and just above what is surely within 8 MiB is whole",
  async () => {
    const { walk, ids } = await shopWithRows(
      Array.from({ length: 252 }, (_, n) => Math.floor(MAX_PAGE_BYTES / 252) - 1 + (n % 2)),
    );
    const { found, bytes } = await walk(250);
    expect(found).toEqual(ids);
    expect(bytes).toHaveLength(2);
    expect(Math.max(...bytes)).toBeLessThanOrEqual(MAX_PAGE_BYTES);
  },
);

test.skipIf(!hasPostgres())(
  "a page of changes, or with a filter, of exactly 8 MiB lets the next row follow",
  async () => {
    // One byte less, for the comma of each row.
    const half = MAX_PAGE_BYTES / 2 - 1;
    const { walkChanges, walkFiltered, ids } = await shopWithRows([half, half, half, half, 0]);
    expect((await walkFiltered()).map(({ length }) => length)).toEqual([2, 2, 1]);
    expect((await walkFiltered()).flat()).toEqual(ids);
    expect((await walkChanges()).flat().toSorted()).toEqual(ids.toSorted());
  },
);
