import { type FileHandle, open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import type { CopyState, CopyStore } from "./copy.ts";

/** A copy in one file, with all rows in memory: an example of a store, good for some hundred thousand rows. */
export interface FileStore<Row> extends CopyStore<Row> {
  /** The copy: the newest state of each row by its `id`. */
  readonly rows: ReadonlyMap<string, Row>;
  /** Closes the file. */
  close(): Promise<void>;
}

/** A line of the file: what one `save` saved. */
interface Line<Row> {
  state: CopyState;
  rows: readonly Row[];
}

const LINE_START = '{"state":';

/**
 * The file is written anew, at opening or before a save, if it has more than this many saved rows, and more than twice
 * the rows of the copy. A save without rows counts as one.
 */
const SPARE_ROWS = 10_000;
const ROWS_PER_LINE = 1_000;

/**
 * Opens the copy in a file, and makes the file if it is missing. Each save appends one line; a line that a crash cut
 * off is taken off again. Only one process may have the file open.
 * @param path its folder must exist
 * @throws Error if the file is not one of a copy
 */
export async function openFileStore<Row extends { id: string }>(path: string): Promise<FileStore<Row>> {
  const rows = new Map<string, Row>();
  let state: CopyState | undefined;
  /** How many saved rows the file has. */
  let saved = 0;
  /** How many of them the file has at least before it is written anew. */
  let rewriteAbove = SPARE_ROWS;
  /** How many bytes the whole lines have. */
  let size = 0;
  /** Whether a save that failed may have left a part of its line after them. */
  let hasRest = false;
  let file = await open(path, "a+", 0o600);
  try {
    const refuse = (number: number) => new Error(`${path}, line ${number}: this is no copy of sds`);
    const { whole, count, rest } = await readWholeLines(file, (text, number) => {
      const line = parseLine<Row>(text);
      if (line === undefined) throw refuse(number);
      for (const row of line.rows) rows.set(row.id, row);
      state = line.state;
      saved += countOf(line.rows);
    });
    if (!rest.startsWith(LINE_START.slice(0, rest.length))) throw refuse(count + 1);
    await file.truncate(whole);
    size = whole;
    await shorten();
  } catch (thrown) {
    await file.close();
    throw thrown;
  }

  /** Writes the newest state of each row into a new file, which takes the place of the old one. */
  async function rewriteIfLong(): Promise<void> {
    if (state === undefined || saved <= rewriteAbove || saved <= 2 * rows.size) return;
    const draft = `${path}.new`;
    const written = await open(draft, "a+", 0o600);
    try {
      await written.truncate(0);
      const all = [...rows.values()];
      // A copy without rows has a state too.
      for (let at = 0; at === 0 || at < all.length; at += ROWS_PER_LINE)
        await written.appendFile(bytesOf({ state, rows: all.slice(at, at + ROWS_PER_LINE) }));
      await written.sync();
      const { size: whole } = await written.stat();
      await rename(draft, path);
      size = whole;
    } catch (thrown) {
      // On a full disk, the draft would take the space that the next save needs.
      await written.truncate(0).catch(() => undefined);
      await written.close();
      throw thrown;
    }
    const former = file;
    file = written;
    saved = rows.size;
    rewriteAbove = SPARE_ROWS;
    hasRest = false;
    await former.close();
    await syncFolder(dirname(path));
  }

  async function shorten(): Promise<void> {
    await rewriteIfLong().catch(() => {
      // For instance for want of space. The file is longer than it has to be, but as good.
      rewriteAbove = saved + SPARE_ROWS;
    });
  }

  async function append(line: Uint8Array): Promise<void> {
    if (hasRest) await file.truncate(size);
    hasRest = true;
    // `write` could write a part of it.
    await file.appendFile(line);
    await file.datasync();
    hasRest = false;
    size += line.length;
  }

  return {
    rows,
    load: async () => state,
    async save(changed, next) {
      await shorten();
      await append(bytesOf({ state: next, rows: changed }));
      for (const row of changed) rows.set(row.id, row);
      state = next;
      saved += countOf(changed);
    },
    async clear() {
      await file.truncate(0);
      size = 0;
      saved = 0;
      rewriteAbove = SPARE_ROWS;
      hasRest = false;
      rows.clear();
      state = undefined;
      await file.datasync();
    },
    close: () => file.close(),
  };
}

/** Makes sure that a power cut does not undo a renaming. Not every system lets a program open folders. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(() => undefined);
  await folder?.sync().catch(() => undefined);
  await folder?.close().catch(() => undefined);
}

function bytesOf<Row>(line: Line<Row>): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(line)}\n`);
}

function countOf(rows: readonly unknown[]): number {
  return Math.max(1, rows.length);
}

function parseLine<Row>(text: string): Line<Row> | undefined {
  try {
    const line = JSON.parse(text) as Partial<Line<Row>> | null;
    return typeof line?.state?.checkpoint === "string" && Array.isArray(line.rows) ? (line as Line<Row>) : undefined;
  } catch {
    return undefined;
  }
}

interface WholeLines {
  /** How many bytes the whole lines have, and how many lines there are. */
  whole: number;
  count: number;
  /** What comes after them: a line that a crash cut off. */
  rest: string;
}

async function readWholeLines(file: FileHandle, onLine: (text: string, number: number) => void): Promise<WholeLines> {
  const NEWLINE = 10;
  const part = new Uint8Array(1 << 20);
  let rest = new Uint8Array(0);
  let whole = 0;
  let count = 0;
  for (let at = 0; ; ) {
    const { bytesRead } = await file.read(part, 0, part.length, at);
    if (bytesRead === 0) return { whole, count, rest: new TextDecoder().decode(rest) };
    at += bytesRead;
    const bytes = new Uint8Array(rest.length + bytesRead);
    bytes.set(rest);
    bytes.set(part.subarray(0, bytesRead), rest.length);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      count += 1;
      onLine(new TextDecoder().decode(bytes.subarray(start, end)), count);
      whole += end + 1 - start;
      start = end + 1;
    }
    rest = bytes.slice(start);
  }
}
