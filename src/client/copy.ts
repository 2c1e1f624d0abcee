import { ApiError, ConnectionError } from "./api-error.ts";
import { requireTime, sleepUnlessAborted } from "./requester.ts";
import type { Page, ResourceReader } from "./resource-reader.ts";

/** How far a copy has come. Keep it as JSON, as it is. */
export interface CopyState {
  /** All changes up to it are in the copy, once the first walk is finished. */
  checkpoint: string;
  /** Where the first walk goes on; null once it is finished. */
  cursor: string | null;
}

/** Where a copy is kept: a database, a file, a table of a warehouse. */
export interface CopyStore<Row> {
  /** The newest saved state; undefined for a copy that is empty. */
  load(): Promise<CopyState | undefined>;
  /**
   * Saves rows and state, all of them or nothing. A row replaces the one with the same `id`. It resolves once they are
   * safe. Rows never have to be deleted.
   */
  save(rows: readonly Row[], state: CopyState): Promise<void>;
  /** Removes all rows and the state. `copy` calls it before it reads everything anew: see `copy`. */
  clear(): Promise<void>;
}

export interface CopyOptions {
  /** Ends the copying. `copy` then throws the signal's reason; everything that was saved stays. */
  signal?: AbortSignal;
  /**
   * Goes on for ever, and asks for changes this often. Errors that can pass (429, 5xx and the network) are then told to
   * `onTrouble`, and the next try comes at the next time, or when the server's `Retry-After` is over.
   */
  everyMs?: number;
  onTrouble?: (error: ApiError | ConnectionError) => void;
  /** Called after each round, whether something changed or not. */
  onCurrent?: (result: CopyResult) => void;
}

export interface CopyResult {
  /** Rows that were saved; a row that changed twice can count twice. */
  rows: number;
  /** Whether everything was read anew, because the server did not know the checkpoint any more. */
  anew: boolean;
}

/**
 * Brings a copy of a resource up to date: at first it reads all rows, later only what changed. It can be interrupted at
 * any moment, and goes on from the newest saved page.
 *
 * If the server's database was restored from a backup, the checkpoint is refused. Then `copy` clears the store and
 * reads everything anew, because rows of the copy may not exist any more. The key of another shop is refused in the
 * same way: so have a store for each shop, or let `clear` throw, and look at the key first.
 * @throws ApiError, ConnectionError, what the store throws, the reason of the signal; TypeError for a wrong `everyMs`
 */
export async function copy<Row>(
  reader: Pick<ResourceReader<Row, object>, "pages" | "changes">,
  store: CopyStore<Row>,
  { signal, everyMs, onTrouble, onCurrent }: CopyOptions = {},
): Promise<CopyResult> {
  if (everyMs !== undefined) requireTime("everyMs", everyMs);
  for (;;) {
    let retryAfterMs = 0;
    try {
      const result = await copyOnce(reader, store, signal);
      onCurrent?.(result);
      if (everyMs === undefined) return result;
    } catch (thrown) {
      if (everyMs === undefined || !canPass(thrown)) throw thrown;
      onTrouble?.(thrown);
      if (thrown instanceof ApiError) retryAfterMs = thrown.retryAfterMs ?? 0;
    }
    await sleepUnlessAborted(Math.max(everyMs, retryAfterMs), signal);
  }
}

async function copyOnce<Row>(
  reader: Pick<ResourceReader<Row, object>, "pages" | "changes">,
  store: CopyStore<Row>,
  signal: AbortSignal | undefined,
): Promise<CopyResult> {
  const state = await store.load();
  if (state !== undefined) {
    try {
      return { rows: await bringUpToDate(reader, store, state, signal), anew: false };
    } catch (thrown) {
      if (!(thrown instanceof ApiError && thrown.code === "bad_cursor")) throw thrown;
      await store.clear();
    }
  }
  return { rows: await bringUpToDate(reader, store, undefined, signal), anew: state !== undefined };
}

/** @returns how many rows were saved */
async function bringUpToDate<Row>(
  reader: Pick<ResourceReader<Row, object>, "pages" | "changes">,
  store: CopyStore<Row>,
  loaded: CopyState | undefined,
  signal: AbortSignal | undefined,
): Promise<number> {
  const options = signal === undefined ? {} : { signal };
  let state = loaded;
  let count = 0;

  async function save({ rows }: Page<Row>, next: CopyState): Promise<void> {
    await store.save(rows, next);
    state = next;
    count += rows.length;
  }

  if (state === undefined || state.cursor !== null) {
    const query = state?.cursor == null ? options : { ...options, cursor: state.cursor };
    // Rows change during the walk. The first page's checkpoint is from before all these changes.
    for await (const page of reader.pages(query))
      await save(page, { checkpoint: state?.checkpoint ?? page.checkpoint, cursor: page.nextCursor });
  }
  if (state === undefined) throw new Error("a list has at least one page");
  for await (const page of reader.changes(state.checkpoint, options)) {
    // Nothing new: nothing to write.
    if (page.rows.length > 0 || page.checkpoint !== state.checkpoint)
      await save(page, { checkpoint: page.checkpoint, cursor: null });
  }
  return count;
}

function canPass(thrown: unknown): thrown is ApiError | ConnectionError {
  if (thrown instanceof ConnectionError) return true;
  return thrown instanceof ApiError && (thrown.status === 429 || thrown.status >= 500);
}
