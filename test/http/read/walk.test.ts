import { expect, test } from "bun:test";
import fc from "fast-check";
import { apply, type PageBody, testApp, testShop } from "../../support/app.ts";
import { order, subscription } from "../../support/records.ts";

/** A date. There are few dates, so that many rows share a date. */
const date = fc.integer({ min: 1, max: 4 }).map((day) => `2026-01-0${day}T00:00:00.000Z`);

const limit = fc.integer({ min: 1, max: 12 });
/** A change between two pages: a new row with this date, or an update of the row with this number. */
const write = fc.oneof(date, fc.nat({ max: 39 }));

test("paging returns each row that existed at the start exactly once, at any page size, even during writes", async () => {
  // Commits are slow. So all runs share one program, and several clients read during the same writes.
  const { app, addShop } = await testApp();
  const shopWith = fc.record({
    dates: fc.array(date, { minLength: 1, maxLength: 40 }),
    limits: fc.tuple(limit, limit, limit),
    writes: fc.array(write, { maxLength: 30 }),
  });
  let shops = 0;
  await fc.assert(
    fc.asyncProperty(shopWith, async ({ dates, limits, writes }) => {
      shops += 1;
      const { shop, get } = await addShop(`walk-${shops}.myshopify.com`);
      const rows = dates.map((startedAt, n) => subscription(n + 1, { startedAt }));
      await apply(app, shop, rows);
      const walks = limits.map((each) => walk(get, each));

      const pending = [...writes];
      let inserted = 1000;
      while ((await Promise.all(walks.map((each) => each.readPage()))).includes(true)) {
        const next = pending.shift();
        if (typeof next === "string") {
          inserted += 1;
          await apply(app, shop, [subscription(inserted, { startedAt: next })]);
        } else if (next !== undefined)
          await apply(app, shop, [
            subscription((next % rows.length) + 1, { status: "PAUSED", startedAt: "2020-01-01T00:00:00.000Z" }),
          ]);
      }
      const existed = new Set<unknown>(rows.map(({ shopifyId }) => shopifyId));
      for (const { seen } of walks) expect(existed.difference(seen)).toEqual(new Set());
    }),
    { numRuns: 25 },
  );
});

/**
 * A client that reads all pages of the subscriptions, one at a time. It fails when it sees a row again, so that it
 * never reads forever.
 */
function walk(get: (path: string) => Promise<Response>, limit: number) {
  const seen = new Set<unknown>();
  let query: string | null = `limit=${limit}`;

  /** @returns whether there was a page left to read */
  async function readPage(): Promise<boolean> {
    if (query === null) return false;
    const { data, page } = (await (await get(`/api/v1/subscriptions?${query}`)).json()) as PageBody;
    const gids = data.map(({ shopifyId }) => shopifyId);
    expect(gids.filter((gid) => seen.has(gid))).toEqual([]);
    for (const gid of gids) seen.add(gid);
    expect(new Set(gids).size).toBe(gids.length);
    expect(gids.length).toBeLessThanOrEqual(limit);
    if (gids.length === 0) expect(page.nextCursor).toBeNull();
    query = page.nextCursor === null ? null : `limit=${limit}&cursor=${encodeURIComponent(page.nextCursor)}`;
    return true;
  }

  return { seen, readPage };
}

test("two shops never see each other's rows, and refuse each other's cursors", async () => {
  const { app, addShop, ...alpha } = await testShop();
  const beta = await addShop("beta.myshopify.com");
  const records = Array.from({ length: 20 }, (_, n) => [subscription(n + 1), order(n + 1, 1)]).flat();
  await apply(app, alpha.shop, records);
  await apply(app, beta.shop, records.slice(0, 22));
  for (const resource of ["subscriptions", "customers", "orders"]) {
    const ids = async ({ all }: Pick<typeof alpha, "all">) => new Set((await all(resource, 3)).map(({ id }) => id));
    const [ofAlpha, ofBeta] = [await ids(alpha), await ids(beta)];
    expect([ofAlpha.size, ofBeta.size]).toEqual([20, 11]);
    expect(ofAlpha.isDisjointFrom(ofBeta)).toBe(true);
    const { page } = (await (await alpha.get(`/api/v1/${resource}?limit=1`)).json()) as PageBody;
    expect((await beta.get(`/api/v1/${resource}?cursor=${page.nextCursor}`)).status).toBe(400);
    expect((await beta.get(`/api/v1/${resource}?shop=alpha.myshopify.com&limit=250`)).status).toBe(200);
  }
});

test("no text as cursor, limit, path or key gives a 500", async () => {
  const { app, request, shop, get } = await testShop();
  await apply(app, shop, [subscription(1)]);
  const text = fc.oneof(fc.string({ unit: "binary" }), fc.string(), fc.constant("2026-01-01T00:00:00.000Z~sub_"));
  await fc.assert(
    fc.asyncProperty(text, text, async (cursor, limit) => {
      const encoded = new URLSearchParams([
        ["cursor", cursor],
        ["limit", limit],
      ]);
      expect([200, 400]).toContain((await get(`/api/v1/subscriptions?${encoded}`)).status);
      const raw = `${cursor}&limit=${limit}`.replaceAll(/[^\x21-\x7e]|#/g, "%");
      expect([200, 400]).toContain((await get(`/api/v1/subscriptions?cursor=${raw}`)).status);
      expect([200, 400, 401, 404]).toContain((await get(`/api/v1/${raw}`)).status);
      const header = cursor.replaceAll(/[^\x20-\x7e\x80-\xff]/g, "");
      expect((await request("/api/v1/subscriptions", { headers: { Authorization: header } })).status).toBe(401);
    }),
    { numRuns: 300 },
  );
});
