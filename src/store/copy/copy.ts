import { SdsError } from "../../domain/error.ts";
import { counted } from "../../lib/text.ts";
import { COPIED_TABLES, type CopiedTable } from "./tables.ts";
import { type CopiedRow, createTally, type Tally } from "./tally.ts";

/** Maximum number of rows in a batch. */
export const BATCH_ROWS = 2_000;
/** A batch ends when its rows reach this many bytes. */
export const BATCH_BYTES = 4 * 1024 * 1024;

/** One of the two databases of a copy. No other program writes to this database during the copy. */
export interface CopySide {
  /** The database's name in messages, without a password. */
  name: string;
  count(table: CopiedTable): Promise<number>;
  batches(table: CopiedTable): AsyncIterator<CopiedRow[], undefined, undefined>;
  /** Returns the highest number that a numbered table ever gave to a row; 0 for a new table. */
  lastNumber(table: CopiedTable): Promise<number>;
  /** Returns the fingerprint of the master key that sealed this side's secrets; undefined without secrets. */
  sealedWith(): Promise<string | undefined>;
  /** Closes the side. If a target is closed before `finish`, it stays unfinished, and programs refuse to open it. */
  close(): Promise<void>;
}

export interface CopyTarget extends CopySide {
  /** @throws SdsError `failed`, which names the table and the row that cannot be stored */
  write(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>;
  setLastNumber(table: CopiedTable, last: number): Promise<void>;
  /** Completes the target: programs can open it from now on. */
  finish(): Promise<void>;
}

export interface CopyProgress {
  /** From 0 to 1: up to 0.5 while rows are copied, above 0.5 while they are compared. */
  done: number;
  rows: number;
}

/**
 * Copies all rows, then compares counts and hashes of both sides.
 * @returns the number of copied rows. A shop counts as one row, although PostgreSQL keeps its counters in another table
 * @throws SdsError `failed`, which names the table that differs, or the row that cannot be stored
 */
export async function copyRows(
  source: CopySide,
  target: CopyTarget,
  onProgress: (progress: CopyProgress) => void,
): Promise<{ rows: number }> {
  let total = 0;
  for (const table of COPIED_TABLES) total += await source.count(table);
  let rows = 0;
  let compared = 0;
  const show = () => onProgress({ done: (rows + compared) / Math.max(2 * total, 1), rows });
  const tallies = new Map<CopiedTable, Tally>();
  for (const table of COPIED_TABLES) {
    const tally = createTally();
    tallies.set(table, tally);
    await copyTable(source, target, table, (batch) => {
      tally.add(batch);
      rows += batch.length;
      show();
    });
    if (table.numbered !== undefined) await target.setLastNumber(table, await source.lastNumber(table));
  }
  for (const [table, tally] of tallies)
    await compare(source, target, table, tally, (count) => {
      compared += count;
      show();
    });
  await target.finish();
  const isWhole = ({ sqlite, postgres }: CopiedTable) => (sqlite?.partOf ?? postgres?.partOf) === undefined;
  return { rows: [...tallies].reduce((sum, [table, { count }]) => sum + (isWhole(table) ? count : 0), 0) };
}

/** Copies a table in batches. Reads the next batch while the target writes the current one. */
async function copyTable(
  source: CopySide,
  target: CopyTarget,
  table: CopiedTable,
  onBatch: (rows: CopiedRow[]) => void,
): Promise<void> {
  const batches = source.batches(table);
  try {
    let { value: batch } = await batches.next();
    while (batch !== undefined) {
      const [next] = await Promise.all([batches.next(), target.write(table, batch)]);
      onBatch(batch);
      batch = next.value;
    }
  } finally {
    await batches.return?.();
  }
}

async function compare(
  source: CopySide,
  target: CopySide,
  table: CopiedTable,
  read: Tally,
  onBatch: (count: number) => void,
): Promise<void> {
  const stored = createTally();
  const batches = target.batches(table);
  for (let { value: batch } = await batches.next(); batch !== undefined; { value: batch } = await batches.next()) {
    stored.add(batch);
    onBatch(batch.length);
  }
  const differs = (how: string) =>
    new SdsError(
      "failed",
      `the copy is wrong: the table ${table.name} ${how}; ${target.name} cannot be used, run sds copy again`,
    );
  if (stored.count !== read.count)
    throw differs(`has ${counted(stored.count, "row", "rows")}, and ${read.count} were read from ${source.name}`);
  if (stored.hash() !== read.hash()) throw differs(`has other content than in ${source.name}`);
  if (table.numbered !== undefined && (await target.lastNumber(table)) !== (await source.lastNumber(table)))
    throw differs("would give other numbers to new rows");
}

/** Describes a row by its table and key, for messages. */
export function describeRow({ name, columns, key }: CopiedTable, row: CopiedRow): string {
  const names = Object.keys(columns);
  const values = key.map((column) => {
    const value = row[names.indexOf(column)];
    return `${column} ${value instanceof Uint8Array ? value.toHex() : JSON.stringify(value)}`;
  });
  return `the row ${values.join(", ")} of the table ${name}`;
}

/** Returns the error for opening an unfinished copy. */
export function unfinishedCopy(name: string): SdsError {
  return new SdsError(
    "failed",
    `${name} has an unfinished copy: run sds copy again, which begins anew, or name another database`,
  );
}

/** Returns the error for a target that is not empty. @param table a table of the target that has rows */
export function notEmpty(name: string, table: string): SdsError {
  return new SdsError(
    "conflict",
    `${name} is not empty, its table ${table} has rows: name an empty database; nothing was changed`,
  );
}

export function otherSchema(name: string, version: number, own: number): SdsError {
  return new SdsError(
    "failed",
    `${name} has schema ${version}, and this sds copies schema ${own}; nothing was changed`,
  );
}
