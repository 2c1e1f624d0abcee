import { expect } from "bun:test";
import type { Shop } from "../../src/domain/shop.ts";
import { type MoveRequest, moveShop } from "../../src/store/copy/move-shop.ts";
import { MOVED_TABLES, type MovedTable } from "../../src/store/copy/moved-tables.ts";
import type { MovedRow, ShopMoves } from "../../src/store/port/shop-moves.ts";
import type { Store } from "../../src/store/port/store.ts";
import { OPERATOR } from "../support/actors.ts";
import { randomBytes, START } from "../support/app.ts";
import { type Engine, engines } from "./engines.ts";
import { fillTables } from "./filled-tables.ts";
import { removeShop, shopWithEvents } from "./fixtures.ts";

export const PAIRS = engines().flatMap((from) =>
  engines().map((to) => ({ from, to, pair: `${from.name} to ${to.name}` })),
);
/**
 * The pairs of two different engines, in both directions. If the tests have only one engine: the pair of this engine
 * with itself. Most tests need no other pairs, because neither side of a move knows the engine of the other side. The
 * main tests use `PAIRS`, which also has moves within one engine.
 */
export const MIXED_PAIRS = PAIRS.length === 1 ? PAIRS : PAIRS.filter(({ from, to }) => from.name !== to.name);
export const DOMAIN = "alpha.myshopify.com";

/** Opens two databases. The first has the shops alpha and beta, the second gamma. Each shop has rows in every table. */
export async function twoDatabases(from: Engine, to: Engine) {
  const [here, there] = [await from.open(), await to.open()];
  const beta = await shopWithEvents(here.store, "beta");
  await fillTables(here.store, beta);
  const alpha = await shopWithEvents(here.store, "alpha");
  await fillTables(here.store, alpha);
  await fillTables(there.store, await shopWithEvents(there.store, "gamma"));
  return { source: here.store, target: there.store, here, there, alpha, beta };
}

export type Stores = Pick<MoveRequest, "source" | "target">;

export function request({ source, target }: Stores, more: Partial<MoveRequest> = {}): MoveRequest {
  const silent = () => undefined;
  return {
    ...{ source, target, domain: DOMAIN, actor: OPERATOR, random: randomBytes },
    ...{ now: () => START + 10_000, sleep: async () => undefined, onRows: silent, onStop: silent, ...more },
  };
}

export async function move(stores: { source: Store; target: Store }, more: Partial<MoveRequest> = {}): Promise<void> {
  expect(await moveShop(request(stores, more))).toBe(true);
  await removeShop(stores.source, DOMAIN);
}

/** Reads all rows of a shop as a move does. Shifts the numbers of each table, so that they begin at 0. */
export async function contentOf({ moves }: Store, { id }: Pick<Shop, "id">): Promise<Record<string, MovedRow[]>> {
  const tables = await Promise.all(
    MOVED_TABLES.map(async (moved) => [moved, await moves.read({ id, offsets: {} }, moved.table.name, {})] as const),
  );
  const first = new Map(tables.map(([moved, rows]) => [moved.table.name, Math.min(...rows.map(numberIn(moved)))]));
  const plain = (moved: MovedTable, row: MovedRow) =>
    moved.columns.map((column, index) => {
      const numbers = moved.numbersOf(column);
      const value = row[index] ?? null;
      return numbers === undefined || value === null ? value : Number(value) - (first.get(numbers) ?? 0);
    });
  return Object.fromEntries(tables.map(([moved, rows]) => [moved.table.name, rows.map((row) => plain(moved, row))]));
}

const numberIn = (moved: MovedTable) => (row: MovedRow) => Number(row[moved.columns.indexOf("number")]);

export const found = async (store: Store) => (await store.shops.find(DOMAIN)) as Shop;

/** The content of a moved shop, without what its move has added. */
export function beforeMove(content: Record<string, MovedRow[]>): Record<string, MovedRow[]> {
  const { shop_changes: [changes = []] = [], former_branches: branches = [] } = content;
  const ended = branches.find((former) => former[1] === changes[1]);
  return {
    ...content,
    shop_changes: [[...changes.slice(0, -1), ended?.[2] ?? ""]],
    former_branches: branches.filter((former) => former !== ended),
    audit: content["audit"]?.slice(0, -1) ?? [],
    checkpoint_origins: [],
  };
}

export async function servedBy(stores: { source: Store; target: Store }): Promise<string[]> {
  const found = await Promise.all([stores.source, stores.target].map((store) => store.shops.find(DOMAIN)));
  return ["source", "target"].filter((_, index) => found[index] !== undefined);
}

/** Returns a store in which the given operations of moves are replaced. */
export function withMoves(store: Store, moves: Partial<ShopMoves>): Store {
  return { ...store, moves: { ...store.moves, ...moves } };
}
