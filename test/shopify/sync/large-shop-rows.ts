import { expect } from "bun:test";
import { join } from "node:path";
import { type ConnectedShop, connectedTo, seeded } from "../../support/connected.ts";
import { seemLarge } from "../../support/large-shop.ts";
import { readRows } from "../../support/rows.ts";

/** Reads the mirror, without the times at which it first saw each customer. */
async function rowsOf({ shop }: ConnectedShop) {
  const lists = await Promise.all(["customers", "subscriptions", "orders"].map((resource) => shop.all(resource)));
  for (const customer of lists[0] ?? []) delete customer["createdAt"];
  return lists.map((rows) => rows.toSorted((a, b) => String(a["id"]).localeCompare(String(b["id"]))));
}

/** Makes a large shop. Its contracts are on two pages. Its file of orders has 540 lines, so more than one batch. */
export async function largeShop() {
  const all = await seeded({ contracts: 90, linesEach: 2, renewals: 1 });
  all.remote.maxPageRows = 50;
  seemLarge(all);
  return all;
}

type Rows = Awaited<ReturnType<typeof rowsOf>>;

async function loadByPages({ platform, test }: ConnectedShop): Promise<Rows> {
  const other = await connectedTo(platform, {}, test.clock.ms);
  await other.load({ pages: true });
  return rowsOf(other);
}

let unchanged: Promise<Rows> | undefined;

/**
 * The rows of the large shop after a load by pages, for tests in which the shop does not change. Reads them once.
 */
export async function unchangedRows(): Promise<Rows> {
  unchanged ??= largeShop().then(loadByPages);
  const rows = await unchanged;
  expect(rows.map(({ length }) => length)).toEqual([90, 90, 180]);
  return rows;
}

/** Expects that the mirror has the same rows as after a load by pages, and that no orders are staged. */
export async function expectLoaded(all: ConnectedShop, rows?: Rows): Promise<void> {
  expect(await rowsOf(all)).toEqual(rows ?? (await loadByPages(all)));
  const { test } = all;
  const data = join(test.folder, "data");
  const staged = (["order_stages", "staged_orders", "staged_order_lines"] as const).map((table) =>
    readRows(data, table),
  );
  expect(staged).toEqual([[], [], []]);
  expect(await test.app.store.syncs.unfinished(all.shop.shop.id, "full")).toBeUndefined();
}

/** The warnings that bulk operations could not be used. */
export function warnings(all: ConnectedShop): string[] {
  return all.logged("cannot read with a bulk operation").map((entry) => JSON.stringify(entry));
}
