import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { MAX_PAGE_BYTES } from "../../../src/store/port/pages.ts";
import { apply, type PageBody, testApp } from "../../support/app.ts";
import { subscription } from "../../support/records.ts";

const KIB = 1_024;
/** Maximum size of an answer without its rows. */
const MAX_ENVELOPE_BYTES = 200;

/** A shop with one subscription of each size. Rows may be larger than today's limit, as in older versions. */
async function shopWithRows(sizes: readonly number[]) {
  const { app, addShop, folder } = await testApp();
  const { shop, get } = await addShop();
  await apply(
    app,
    shop,
    sizes.map((_, n) => subscription(n + 1)),
  );
  using db = new Database(join(folder, "data/sds.db"), { strict: true });
  const rows = db.query<{ id: string; json: string }, []>("SELECT id, json FROM subscriptions ORDER BY id").all();
  const write = db.prepare("UPDATE subscriptions SET json = ? WHERE id = ?");
  for (const [n, { id, json }] of rows.entries()) {
    const row = JSON.parse(json);
    row.lines[0].title = "";
    row.lines[0].title = "x".repeat(Math.max(0, (sizes[n] ?? 0) - JSON.stringify(row).length));
    write.run(JSON.stringify(row), id);
  }

  /** @returns the ids of all pages, and how many bytes each answer has */
  async function walk(limit: number) {
    const ids: unknown[] = [];
    const bytes: number[] = [];
    let query = `limit=${limit}`;
    while (query !== "") {
      const text = await (await get(`/api/v1/subscriptions?${query}`)).text();
      const { data, page } = JSON.parse(text) as PageBody;
      expect(page.limit).toBe(limit);
      ids.push(...data.map(({ id }) => id));
      bytes.push(Buffer.byteLength(text));
      query = page.nextCursor === null ? "" : `limit=${limit}&cursor=${encodeURIComponent(page.nextCursor)}`;
    }
    return { ids, bytes, expected: rows.map(({ id }) => id).toReversed() };
  }
  return { walk };
}

test.each([250, 33, 32, 7])("pages of %d rows of 256 KiB are 8 MiB at most, and give each row once", async (limit) => {
  const { walk } = await shopWithRows(Array.from({ length: 64 }, () => 256 * KIB - 1));
  const { ids, bytes, expected } = await walk(limit);
  expect(ids).toEqual(expected);
  expect(Math.max(...bytes)).toBeLessThanOrEqual(MAX_PAGE_BYTES + MAX_ENVELOPE_BYTES);
  expect(bytes).toHaveLength(Math.ceil(64 / Math.min(limit, 32)));
});

test("an older version's row above 8 MiB is a page by itself", async () => {
  const { walk } = await shopWithRows([0, 9_000 * KIB, 0, 9_000 * KIB, 9_000 * KIB, 0, 0]);
  for (const limit of [1, 3, 250]) {
    const { ids, bytes, expected } = await walk(limit);
    expect(ids).toEqual(expected);
    expect(bytes.filter((each) => each > MAX_PAGE_BYTES)).toHaveLength(3);
    expect(Math.max(...bytes)).toBeLessThan(9_000 * KIB + MAX_ENVELOPE_BYTES);
  }
});

test("a page of 250 rows is whole, just below and just above the limit from which sizes are checked", async () => {
  const { walk } = await shopWithRows(
    Array.from({ length: 252 }, (_, n) => Math.floor(MAX_PAGE_BYTES / 252) - 1 + (n % 2)),
  );
  const { ids, bytes, expected } = await walk(250);
  expect(ids).toEqual(expected);
  expect(bytes).toHaveLength(2);
  expect(Math.max(...bytes)).toBeLessThanOrEqual(MAX_PAGE_BYTES + MAX_ENVELOPE_BYTES);
});
