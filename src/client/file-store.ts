import { type FileHandle, open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import type { CopyState, CopyStore } from "./copy.ts";

/** A copy in one file, with all rows in memory: a store for up to some hundred thousand rows. */
export interface FileStore<Row> extends CopyStore<Row> {
  /** The newest state of each row, by `id`. */
  readonly rows: ReadonlyMap<string, Row>;
  /** Closes the file. */
  close(): Promise<void>;
}

/** A line of the file: the rows and the state of one `save`. */
interface SavedLine<Row> {
  state: CopyState;
  rows: readonly Row[];
}

interface OpenFile<Row> {
  readonly path: string;
  readonly rows: Map<string, Row>;
  state: CopyState | undefined;
  /** Each rewriting of the file replaces this handle. */
  handle: FileHandle;
  /** Number of saved rows in the file, including outdated versions of rows. */
  savedRows: number;
  /** The file is rewritten only if `savedRows` is above this number. */
  rewriteAbove: number;
  /** Bytes of all whole lines. */
  size: number;
  /** Whether the file may end with an incomplete line, because a save failed. */
  hasRest: boolean;
}

const LINE_START = '{"state":';

/**
 * A file with more saved rows than this is checked when it is opened, and before each save. If more than half of its
 * saved rows are outdated, the file is rewritten. A save without rows counts as one row.
 */
const SPARE_ROWS = 10_000;
const ROWS_PER_LINE = 1_000;

/**
 * Opens the copy in a file, and makes the file if it is missing. Each save appends one line. If a crash has left an
 * incomplete line at the end, this call removes the line. Only one process may have the file open.
 * @param path its folder must exist
 * @throws Error if the file is not a copy
 */
export async function openFileStore<Row extends { id: string }>(path: string): Promise<FileStore<Row>> {
  const file: OpenFile<Row> = {
    path,
    rows: new Map(),
    state: undefined,
    handle: await open(path, "a+", 0o600),
    savedRows: 0,
    rewriteAbove: SPARE_ROWS,
    size: 0,
    hasRest: false,
  };
  try {
    await readLines(file);
    await shorten(file);
  } catch (thrown) {
    await file.handle.close();
    throw thrown;
  }
  return {
    rows: file.rows,
    load: async () => file.state,
    async save(rows, state) {
      await shorten(file);
      await append(file, bytesOf({ state, rows }));
      take(file, { state, rows });
    },
    async clear() {
      await file.handle.truncate(0);
      Object.assign(file, { state: undefined, savedRows: 0, rewriteAbove: SPARE_ROWS, size: 0, hasRest: false });
      file.rows.clear();
      await file.handle.datasync();
    },
    close: () => file.handle.close(),
  };
}

async function readLines<Row extends { id: string }>(file: OpenFile<Row>): Promise<void> {
  const refuse = (number: number) => new Error(`${file.path}, line ${number}: this is not a copy of sds`);
  const { size, count, rest } = await readWholeLines(file.handle, (text, number) => {
    const line = parseLine<Row>(text);
    if (line === undefined) throw refuse(number);
    take(file, line);
  });
  if (!rest.startsWith(LINE_START.slice(0, rest.length))) throw refuse(count + 1);
  await file.handle.truncate(size);
  file.size = size;
}

/** Adds the rows of a line to the rows in memory. */
function take<Row extends { id: string }>(file: OpenFile<Row>, { state, rows }: SavedLine<Row>): void {
  for (const row of rows) file.rows.set(row.id, row);
  file.state = state;
  file.savedRows += Math.max(1, rows.length);
}

async function append(file: OpenFile<unknown>, line: Uint8Array): Promise<void> {
  if (file.hasRest) await file.handle.truncate(file.size);
  file.hasRest = true;
  // Not `write`, which could write only a part of the line.
  await file.handle.appendFile(line);
  await file.handle.datasync();
  file.hasRest = false;
  file.size += line.length;
}

/** Rewrites a file that is too long. If that fails, as on a full disk, the long file stays valid. */
async function shorten(file: OpenFile<unknown>): Promise<void> {
  const { state, savedRows, rewriteAbove, rows } = file;
  if (state === undefined || savedRows <= rewriteAbove || savedRows <= 2 * rows.size) return;
  await rewrite(file, state).catch(() => {
    file.rewriteAbove = savedRows + SPARE_ROWS;
  });
}

/** Writes the newest state of each row into a new file, which then replaces the old one. */
async function rewrite(file: OpenFile<unknown>, state: CopyState): Promise<void> {
  const draft = `${file.path}.new`;
  const former = file.handle;
  const handle = await open(draft, "a+", 0o600);
  try {
    await handle.truncate(0);
    const rows = [...file.rows.values()];
    // Writes one line at least, because a copy without rows has a state too.
    for (let at = 0; at === 0 || at < rows.length; at += ROWS_PER_LINE)
      await handle.appendFile(bytesOf({ state, rows: rows.slice(at, at + ROWS_PER_LINE) }));
    await handle.sync();
    const { size } = await handle.stat();
    await rename(draft, file.path);
    Object.assign(file, { handle, size, savedRows: file.rows.size, rewriteAbove: SPARE_ROWS, hasRest: false });
  } catch (thrown) {
    // Empties the draft, because on a full disk the draft would take the space that the next save needs.
    await handle.truncate(0).catch(() => undefined);
    await handle.close();
    throw thrown;
  }
  await former.close();
  await syncFolder(dirname(file.path));
}

/** Syncs the folder, so that a power cut does not undo a rename. Some systems cannot open folders. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(() => undefined);
  await folder?.sync().catch(() => undefined);
  await folder?.close().catch(() => undefined);
}

function bytesOf(line: SavedLine<unknown>): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(line)}\n`);
}

function parseLine<Row>(text: string): SavedLine<Row> | undefined {
  try {
    const line = JSON.parse(text) as SavedLine<Row> | null;
    return typeof line?.state?.checkpoint === "string" && Array.isArray(line.rows) ? line : undefined;
  } catch {
    return undefined;
  }
}

interface WholeLines {
  /** Bytes of all whole lines. */
  size: number;
  count: number;
  /** The incomplete line at the end, which a crash left; empty if all lines are complete. */
  rest: string;
}

async function readWholeLines(file: FileHandle, onLine: (text: string, number: number) => void): Promise<WholeLines> {
  const NEWLINE = 10;
  const part = new Uint8Array(1 << 20);
  let rest = new Uint8Array(0);
  let size = 0;
  let count = 0;
  for (let at = 0; ; ) {
    const { bytesRead } = await file.read(part, 0, part.length, at);
    if (bytesRead === 0) return { size, count, rest: new TextDecoder().decode(rest) };
    at += bytesRead;
    const bytes = new Uint8Array(rest.length + bytesRead);
    bytes.set(rest);
    bytes.set(part.subarray(0, bytesRead), rest.length);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      count += 1;
      onLine(new TextDecoder().decode(bytes.subarray(start, end)), count);
      size += end + 1 - start;
      start = end + 1;
    }
    rest = bytes.slice(start);
  }
}
