import { SdsError } from "../../domain/error.ts";
import type { MovedRange, MovedRow, MovedShop, ShopMoves } from "../port/shop-moves.ts";
import { StoreError } from "../port/store-error.ts";
import { MOVED_TABLES, type MovedTable, partsOf, valueIn } from "./moved-tables.ts";

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
  for (const moved of MOVED_TABLES.filter(({ owner }) => owner === undefined))
    for (const kind of moved.kinds ?? [undefined]) written += await copyTable(source, target, moved, { kind }, onRows);
  return written;
}

/** Copies the differences of a table, or of a part of its rows. @returns how many rows it wrote */
async function copyTable(
  source: MoveSide,
  target: MoveTarget,
  moved: MovedTable,
  part: Pick<MovedRange, "kind" | "owners">,
  onRows: (rows: number) => void,
): Promise<number> {
  const { name } = moved.table;
  let written = 0;
  let after: MovedRow | undefined;
  do {
    const batch = await source.moves.readBatch(source.shop, name, { ...part, after }, BATCH);
    const stored = await target.moves.readBatch(target.shop, name, { ...part, after, upTo: batch.upTo }, BATCH);
    // The target may have more or larger rows in this range. Then only the first part of the range is compared.
    const isCut = stored.upTo !== undefined;
    const upTo = stored.upTo ?? batch.upTo;
    const rows = isCut ? await source.moves.read(source.shop, name, { ...part, after, upTo }) : batch.rows;
    if (JSON.stringify(rows) !== JSON.stringify(stored.rows)) {
      const kept = new Set(rows.map((row) => keyOf(moved, row)));
      // The parts of removed rows are removed before the rows themselves. Otherwise, after an interruption, no row
      // would lead to the parts.
      written += await copyParts(stored.rows.filter((row) => !kept.has(keyOf(moved, row))));
      written += await writeDifferences(target, moved, rows, stored.rows);
    }
    written += await copyParts(rows);
    onRows(rows.length);
    after = upTo;
  } while (after !== undefined);
  return written;

  async function copyParts(owners: readonly MovedRow[]): Promise<number> {
    if (owners.length === 0) return 0;
    let count = 0;
    for (const owned of partsOf(moved)) count += await copyTable(source, target, owned, { owners }, onRows);
    return count;
  }
}

/** Changes the `stored` rows of the target so that they equal `rows` of the source. @returns how many rows it wrote */
async function writeDifferences(
  target: MoveTarget,
  moved: MovedTable,
  rows: readonly MovedRow[],
  stored: readonly MovedRow[],
): Promise<number> {
  const name = moved.table.name;
  const [texts, storedTexts] = [textsByKey(moved, rows), textsByKey(moved, stored)];
  const isNew = (row: MovedRow) => storedTexts.get(keyOf(moved, row)) !== JSON.stringify(row);
  const isOld = (row: MovedRow) => texts.get(keyOf(moved, row)) !== JSON.stringify(row);
  const [added, removed] = [rows.filter(isNew), stored.filter(isOld)];
  if (added.length + removed.length === 0) return 0;
  await target.moves.write(target.move, target.stop, name, removed, added).catch((thrown: unknown) => {
    if (!(thrown instanceof StoreError) || thrown.reason !== "conflict") throw thrown;
    const message = `a row of \`${name}\` has the same key as a row of another shop in the other database`;
    throw new SdsError("conflict", message, { cause: thrown });
  });
  return Math.max(added.length, removed.length);
}

function textsByKey(moved: MovedTable, rows: readonly MovedRow[]): Map<string, string> {
  return new Map(rows.map((row) => [keyOf(moved, row), JSON.stringify(row)]));
}

function keyOf(moved: MovedTable, row: MovedRow): string {
  return JSON.stringify(moved.key.map((column) => valueIn(moved, row, column)));
}
