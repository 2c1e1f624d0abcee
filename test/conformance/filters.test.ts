import { describe, expect, test } from "bun:test";
import { customerId } from "../../src/domain/ids.ts";
import type { RowFilter } from "../../src/domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../../src/domain/resources.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import { SCANNED_CHANGES, SCANNED_ROWS } from "../../src/store/engine/row-scan.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { gid, order, subscription } from "../support/records.ts";
import { engines, storeWithShop } from "./engines.ts";
import { allRows, changedRows, commit, parsePage } from "./fixtures.ts";

type Row = Record<string, unknown>;

async function filteredRows(
  store: Store,
  shop: MirroredShop,
  resource: Resource,
  filter: RowFilter,
  limit = 250,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (
    let after = null as { at: number; id: string } | null, isFirst = true;
    isFirst || after !== null;
    isFirst = false
  ) {
    const page = await store.pages.listFiltered(shop.id, resource, filter, limit, after);
    if (page === undefined) throw new Error("the page's own cursor was refused");
    rows.push(...parsePage(page.rows));
    after = page.end;
  }
  return rows;
}

describe.each(engines())("$name: filtered rows", (engine) => {
  async function filled() {
    const { store, shop } = await storeWithShop(engine);
    const records = [1, 2, 3, 4].flatMap((n) => [
      subscription(n, { customer: gid.customer((n % 2) + 1), status: n === 3 ? "PAUSED" : "ACTIVE" }),
      ...[1, 2, 3].map((cycle) => order(n, cycle, { status: cycle === 2 ? "FAILED" : "PAID" })),
    ]);
    await commit(store, shop, records);
    return { store, shop };
  }

  test.each([1, 2, 250])("are the rows of the list with the named values, with %d rows a page", async (limit) => {
    const { store, shop } = await filled();
    for (const resource of RESOURCES) {
      const all = await allRows(store, shop, resource);
      for (const row of all) {
        const { id, customerId, contractId, status, shopifyId } = row as Record<string, string>;
        const filters: RowFilter[] = [
          { id },
          { statuses: [status] },
          { statuses: [status, "PAUSED", "FAILED"] },
          { customerId },
          { contractId },
          { customerId, statuses: [status] },
        ].filter((filter) =>
          Object.values(filter)
            .flat()
            .every((value) => value !== undefined),
        ) as RowFilter[];
        if (resource === "orders") filters.push({ orderGid: shopifyId as string });
        for (const filter of filters) {
          const fields: Record<string, string> = { orderGid: "shopifyId", statuses: "status" };
          const wanted = Object.entries(filter).map(([name, value]) => [fields[name] ?? name, [value].flat()] as const);
          const expected = all.filter((each) => wanted.every(([name, values]) => values.includes(each[name])));
          expect(await filteredRows(store, shop, resource, filter, limit)).toEqual(expected);
          const changed = await changedRows(store, shop, resource, { filter });
          expect(new Set(changed.map((each) => each["id"]))).toEqual(new Set(expected.map((each) => each["id"])));
        }
      }
    }
  });

  test("follow a contract that moves to another customer", async () => {
    const { store, shop } = await filled();
    const [moved] = await filteredRows(store, shop, "subscriptions", { statuses: ["PAUSED"] });
    await commit(store, shop, [
      subscription(3, { customer: gid.customer(9), status: "PAUSED" }),
      order(3, 1, { status: "RECOVERED" }),
    ]);
    const ids = async (resource: Resource) =>
      (await filteredRows(store, shop, resource, { customerId: customerId(shop.domain, gid.customer(9)) })).map(
        ({ id }) => id,
      );
    expect(await ids("subscriptions")).toEqual([moved?.["id"]]);
    expect(await ids("orders")).toHaveLength(1);
    const former = await filteredRows(store, shop, "subscriptions", { customerId: String(moved?.["customerId"]) });
    expect(former.map(({ id }) => id)).not.toContain(moved?.["id"]);
  });

  test("are searched in a limited number of rows for each page, and no row is missed or repeated", async () => {
    const { store, shop } = await storeWithShop(engine);
    const rare = new Set([1, SCANNED_ROWS - 1, SCANNED_ROWS, SCANNED_ROWS + 1, SCANNED_ROWS + 40]);
    const count = SCANNED_ROWS + 50;
    for (let begin = 1; begin <= count; begin += 5_000) {
      const numbers = Array.from({ length: Math.min(5_000, count - begin + 1) }, (_, index) => begin + index);
      const startedAt = (n: number) => new Date(START - n * 1_000).toISOString();
      await commit(
        store,
        shop,
        numbers.map((n) =>
          subscription(n, {
            customer: gid.customer(1),
            lines: [],
            status: rare.has(n) ? "PAUSED" : "ACTIVE",
            startedAt: startedAt(n),
          }),
        ),
      );
    }
    const contracts = (rows: Row[]) => rows.map(({ shopifyId }) => Number(String(shopifyId).split("/").at(-1)));
    const filter = { statuses: ["PAUSED"] };
    const first = await store.pages.listFiltered(shop.id, "subscriptions", filter, 250, null);
    expect([contracts(parsePage(first?.rows ?? new Uint8Array())), first?.end === null]).toEqual([
      [1, SCANNED_ROWS - 1, SCANNED_ROWS],
      false,
    ]);
    for (const limit of [1, 3, 250])
      expect(contracts(await filteredRows(store, shop, "subscriptions", filter, limit))).toEqual([...rare]);
    const found: number[] = [];
    let pages = 0;
    for (let after = 0, hasMore = true; hasMore; pages += 1) {
      const page = await store.pages.changes(shop.id, "subscriptions", filter, 250, after);
      found.push(...contracts(parsePage(page.rows)));
      [after, hasMore] = [page.reached, page.hasMore];
    }
    expect([found, pages]).toEqual([[...rare], Math.floor(count / SCANNED_CHANGES) + 1]);
  });
});
