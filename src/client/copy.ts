import { ApiError, ConnectionError } from "./api-error.ts";
import type { IncludeFields, Page, ReadOptions, ResourceReader } from "./resource-reader.ts";
import type { Subscription, SubscriptionWithFields } from "./resources.ts";
import { requireTime, sleepUnlessAborted } from "./waits.ts";

/** The position of a copy. Store it as JSON, unchanged. */
export interface CopyState {
  /** Once all rows have been read, the copy has all changes up to this checkpoint. */
  checkpoint: string;
  /** Cursor at which the reading of all rows continues; null once all rows have been read. */
  cursor: string | null;
}

/** Keeps a copy: in a database, in a file, or in a table of a warehouse. */
export interface CopyStore<Row> {
  /** Returns the newest saved state; undefined for an empty copy. */
  load(): Promise<CopyState | undefined>;
  /**
   * Saves rows and state together or not at all. Resolves when both are stored durably. A row replaces the row with
   * the same `id`. Rows never have to be deleted.
   */
  save(rows: readonly Row[], state: CopyState): Promise<void>;
  /** Removes all rows and the state. `copy` calls this after a restore, before it reads all rows again. */
  clear(): Promise<void>;
}

export interface CopyOptions {
  /** An abort of this signal ends the copying. `copy` then throws the signal's reason. Saved rows stay. */
  signal?: AbortSignal;
  /**
   * If set, `copy` keeps asking for changes at this interval. `onTrouble` then gets temporary errors (429, 5xx and the
   * network). After an error, `copy` waits for the interval or for `Retry-After`, whichever is longer.
   */
  everyMs?: number;
  onTrouble?: (error: ApiError | ConnectionError) => void;
  /** Called after each round, also if nothing changed. */
  onCurrent?: (result: CopyResult) => void;
}

export interface CopyResult {
  /** Number of saved rows. A row that changed twice can be counted twice. */
  rows: number;
  /** Whether all rows were read again, because the server's database was restored from a backup. */
  anew: boolean;
}

type CopyReader<Row> = Pick<ResourceReader<Row, object>, "pages" | "changes">;
type CopyQuery = ReadOptions & Partial<IncludeFields>;

/**
 * Brings a copy of a resource up to date: the first run reads all rows, later runs read only changed rows. An
 * interrupted run continues after the newest saved page.
 *
 * After a restore from a backup, the server refuses the checkpoint as `restored`, and may lack rows of the copy. Then
 * `copy` clears the store and reads all rows again. On any other refusal, for example because the key belongs to
 * another shop, `copy` throws and leaves the store unchanged.
 *
 * With `include`, subscriptions are copied with their custom fields. Pass `include` from a store's first run on,
 * because later runs copy only rows that have changed.
 * @throws ApiError, ConnectionError, errors of the store, the reason of the signal; TypeError for a wrong `everyMs`
 */
export async function copy(
  reader: CopyReader<Subscription>,
  store: CopyStore<SubscriptionWithFields>,
  options: CopyOptions & IncludeFields,
): Promise<CopyResult>;
export async function copy<Row>(
  reader: CopyReader<Row>,
  store: CopyStore<Row>,
  options?: CopyOptions,
): Promise<CopyResult>;
export async function copy<Row>(
  reader: CopyReader<Row>,
  store: CopyStore<Row>,
  { signal, everyMs, onTrouble, onCurrent, include }: CopyOptions & Partial<IncludeFields> = {},
): Promise<CopyResult> {
  const read = { ...(signal !== undefined && { signal }), ...(include !== undefined && { include }) };
  if (everyMs !== undefined) requireTime("everyMs", everyMs);
  for (;;) {
    let retryAfterMs = 0;
    try {
      const result = await copyOnce(reader, store, read);
      onCurrent?.(result);
      if (everyMs === undefined) return result;
    } catch (thrown) {
      if (everyMs === undefined || !isTemporary(thrown)) throw thrown;
      onTrouble?.(thrown);
      if (thrown instanceof ApiError) retryAfterMs = thrown.retryAfterMs ?? 0;
    }
    await sleepUnlessAborted(Math.max(everyMs, retryAfterMs), signal);
  }
}

async function copyOnce<Row>(reader: CopyReader<Row>, store: CopyStore<Row>, options: CopyQuery): Promise<CopyResult> {
  const state = await store.load();
  if (state !== undefined) {
    try {
      return { rows: await bringUpToDate(reader, store, state, options), anew: false };
    } catch (thrown) {
      if (!(thrown instanceof ApiError && thrown.reason === "restored")) throw thrown;
      await store.clear();
    }
  }
  return { rows: await bringUpToDate(reader, store, undefined, options), anew: state !== undefined };
}

/** @returns how many rows were saved */
async function bringUpToDate<Row>(
  reader: CopyReader<Row>,
  store: CopyStore<Row>,
  loaded: CopyState | undefined,
  options: CopyQuery,
): Promise<number> {
  let state = loaded;
  let count = 0;

  async function save({ rows }: Page<Row>, next: CopyState): Promise<void> {
    await store.save(rows, next);
    state = next;
    count += rows.length;
  }

  if (state === undefined || state.cursor !== null) {
    // Checks the checkpoint before the cursor is used. The reason of a refused checkpoint can be `restored` or
    // `other_shop`. A refused cursor of a list has neither of these reasons.
    if (state !== undefined) await requireCheckpoint(reader, state.checkpoint, options);
    const query = state?.cursor == null ? options : { ...options, cursor: state.cursor };
    // Rows can change while they are read. So the state keeps the first page's checkpoint, which is older than all
    // these changes.
    for await (const page of reader.pages(query))
      await save(page, { checkpoint: state?.checkpoint ?? page.checkpoint, cursor: page.nextCursor });
  }
  if (state === undefined) throw new Error("a list has at least one page");
  for await (const page of reader.changes(state.checkpoint, options)) {
    // An empty page with the same checkpoint needs no write.
    if (page.rows.length > 0 || page.checkpoint !== state.checkpoint)
      await save(page, { checkpoint: page.checkpoint, cursor: null });
  }
  return count;
}

/** @throws ApiError if the server refuses the checkpoint */
async function requireCheckpoint(reader: CopyReader<unknown>, checkpoint: string, options: CopyQuery): Promise<void> {
  for await (const _page of reader.changes(checkpoint, { ...options, limit: 1 })) return;
}

function isTemporary(thrown: unknown): thrown is ApiError | ConnectionError {
  if (thrown instanceof ConnectionError) return true;
  return thrown instanceof ApiError && (thrown.status === 429 || thrown.status >= 500);
}
