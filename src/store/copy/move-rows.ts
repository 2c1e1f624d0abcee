import { SdsError } from "../../domain/error.ts";
import type { MovedRow, MovedShop, ShopMoves } from "../port/shop-moves.ts";
import { StoreError } from "../port/store-error.ts";
import { MOVED_TABLES, type MovedTable, movedTableOf, valueIn } from "./moved-tables.ts";

/** A moving shop, and the operations of the database that has it. */
export interface MoveSide {
  moves: Pick<ShopMoves, "read" | "readBatch" | "write">;
  shop: MovedShop;
}

interface MoveTarget extends MoveSide {
  move: string;
  /** See `ShopMoves.arm`. */
  stop: string;
}

/** Maximum size of a batch. A row that exceeds it is a batch of its own, or the last row of a batch. */
const BATCH = { rows: 500, bytes: 4 * 1024 * 1024 };

/**
 * Makes the rows of a shop in the target the same as in the source. Reads both sides in batches of the same range of
 * keys, and writes only the rows that differ. So a repeated pass writes only what is missing or has changed since.
 * @param onRows called with the number of rows read from the source
 * @returns how many rows it wrote
 */
export async function copyDifferences(
  source: MoveSide,
  target: MoveTarget,
  onRows: (rows: number) => void,
): Promise<number> {
  let written = 0;
  for (const moved of MOVED_TABLES) {
    // Attempts are copied with their deliveries, because SQLite finds attempts only by their deliveries.
    if (moved.table.name === "attempts") continue;
    for (const kind of moved.kinds ?? [undefined]) written += await copyTable(source, target, moved, kind, onRows);
  }
  return written;
}

/** Copies the differences of a table, or of the rows of a kind. @returns how many rows it wrote */
async function copyTable(
  source: MoveSide,
  target: MoveTarget,
  moved: MovedTable,
  kind: string | undefined,
  onRows: (rows: number) => void,
): Promise<number> {
  const { name } = moved.table;
  let written = 0;
  let after: MovedRow | undefined;
  do {
    const batch = await source.moves.readBatch(source.shop, name, { kind, after }, BATCH);
    const stored = await target.moves.readBatch(target.shop, name, { kind, after, upTo: batch.upTo }, BATCH);
    // The target may have more or larger rows in this range. Then only the first part of the range is compared.
    const isPart = stored.upTo !== undefined && JSON.stringify(stored.upTo) !== JSON.stringify(batch.upTo);
    const upTo = isPart ? stored.upTo : batch.upTo;
    const rows = isPart ? await source.moves.read(source.shop, name, { kind, after, upTo }) : batch.rows;
    written += await writeDifferences(target, moved, rows, stored.rows);
    if (name === "deliveries") written += await copyAttempts(source, target, rows);
    onRows(rows.length);
    after = upTo;
  } while (after !== undefined);
  return written;
}

/** Changes the `stored` rows of the target so that they equal `rows` of the source. @returns how many rows it wrote */
async function writeDifferences(
  target: MoveTarget,
  moved: MovedTable,
  rows: readonly MovedRow[],
  stored: readonly MovedRow[],
): Promise<number> {
  const name = moved.table.name;
  const keyOf = (row: MovedRow) => JSON.stringify(moved.key.map((column) => valueIn(moved, row, column)));
  const texts = new Map(stored.map((row) => [keyOf(row), JSON.stringify(row)]));
  const added = rows.filter((row) => texts.get(keyOf(row)) !== JSON.stringify(row));
  const [kept, replaced] = [new Set(rows.map(keyOf)), new Set(added.map(keyOf))];
  const removed = stored.filter((row) => !kept.has(keyOf(row)) || replaced.has(keyOf(row)));
  if (added.length + removed.length === 0) return 0;
  await target.moves.write(target.move, target.stop, name, removed, added).catch((thrown: unknown) => {
    if (!(thrown instanceof StoreError) || thrown.reason !== "conflict") throw thrown;
    const message = `a row of \`${name}\` has the same key as a row of another shop in the other database`;
    throw new SdsError("conflict", message, { cause: thrown });
  });
  return Math.max(added.length, removed.length);
}

/** Copies the attempts of deliveries that were copied. */
async function copyAttempts(source: MoveSide, target: MoveTarget, rows: readonly MovedRow[]): Promise<number> {
  if (rows.length === 0) return 0;
  const [moved, attempts] = [movedTableOf("deliveries"), movedTableOf("attempts")];
  const deliveries = rows.map((row) => Number(valueIn(moved, row, "number")));
  const found = await source.moves.read(source.shop, "attempts", { deliveries });
  const stored = await target.moves.read(target.shop, "attempts", { deliveries });
  return writeDifferences(target, attempts, found, stored);
}
