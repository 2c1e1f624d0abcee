import type { BulkPart, SyncRun } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import { PlatformError } from "../api/platform-error.ts";
import { BulkFailure } from "../bulk/bulk-failure.ts";
import type { ObjectBatch } from "../bulk/file-lines.ts";
import type { BulkOperations } from "../bulk/operations.ts";
import type { ResultReader } from "../bulk/result-reader.ts";
import type { BulkProgress, OnProgress, SyncProgress } from "./progress.ts";

type PartName = keyof NonNullable<SyncRun["bulk"]>;

/** A run, and what saves its progress. */
export interface SavedRun {
  run: SyncRun;
  save(change: Partial<SyncRun>): Promise<void>;
}

/** What becomes of the objects of a part. */
interface PartTarget {
  /** Called before the first batch. */
  begin?(part: BulkPart): Promise<void>;
  /** @returns how many customers or orders these are */
  store(part: BulkPart, batch: ObjectBatch): Promise<number>;
}

/** Reads the parts of a run that come from bulk operations. */
export interface BulkPartReader {
  /** Starts the operations that are not started yet. @throws what is no trouble with bulk operations */
  begin(shop: Shop, saved: SavedRun): Promise<void>;
  /**
   * Waits for the file of a part, reads it, and saves after each batch how far it is.
   * @returns false if the part is not planned, or has to be read page by page
   */
  read(shop: Shop, saved: SavedRun, name: PartName, target: PartTarget, onProgress: OnProgress): Promise<boolean>;
}

interface Dependencies {
  operations: BulkOperations;
  readResult: ResultReader;
  log: Log;
}

export function createBulkPartReader({ operations, readResult, log }: Dependencies): BulkPartReader {
  /** Waits for the file of a part. One that an earlier run has left, and the platform has no more, begins anew. */
  async function prepare(shop: Shop, saved: SavedRun, name: PartName, part: BulkPart, onProgress: OnProgress) {
    const { run, save } = saved;
    if (part.operation !== null && (await operations.find(shop, part.operation)) === undefined) {
      Object.assign(part, { operation: null, offset: 0, count: 0, stage: null });
      if (name === "customers") run.counts = { ...run.counts, customers: 0, skipped: 0 };
    }
    if (part.operation === null) {
      part.operation = await operations.begin(shop, part.query);
      await save({});
    }
    await operations.wait(shop, part.operation, (objectCount) => {
      onProgress(progressOf(run, name, "preparing", objectCount, part.total));
    });
    return part.operation;
  }

  function warn(shop: Shop, what: PartName, thrown: Error): void {
    if (thrown instanceof OtherLoad) {
      log.warn("another load of the shop runs; this one reads page by page", { shop: shop.domain, what });
      return;
    }
    const message = "cannot read with a bulk operation of the platform; reading page by page";
    log.warn(message, { shop: shop.domain, what, error: thrown.message });
  }

  return {
    async begin(shop, { run, save }) {
      for (const part of Object.values(run.bulk ?? {})) {
        if (part.operation !== null) continue;
        try {
          part.operation = await operations.begin(shop, part.query);
          await save({});
        } catch (thrown) {
          // It is tried again when the part is read. By then another operation may have ended.
          if (!isBulkTrouble(thrown)) throw thrown;
        }
      }
    },

    async read(shop, saved, name, target, onProgress) {
      const { run, save } = saved;
      const part = run.bulk?.[name];
      if (part === undefined) return false;
      try {
        const operation = await prepare(shop, saved, name, part, onProgress);
        await target.begin?.(part);
        for await (const batch of readResult(shop, operation, part.offset)) {
          part.count += await target.store(part, batch);
          part.offset = batch.end;
          await save({});
          onProgress(progressOf(run, name, "reading", part.count, part.total));
        }
        return true;
      } catch (thrown) {
        if (!isBulkTrouble(thrown)) throw thrown;
        warn(shop, name, thrown);
        // The next page saves it. If that fails too, the platform is down, and the next run tries this again.
        delete run.bulk?.[name];
        return false;
      }
    },
  };
}

/** Another load of the shop stages the orders now. */
export class OtherLoad extends BulkFailure {}

/** Whether pages may still work. If the platform is down, they do not either, and their error says so. */
function isBulkTrouble(thrown: unknown): thrown is BulkFailure | PlatformError {
  return thrown instanceof BulkFailure || thrown instanceof PlatformError;
}

function progressOf(
  { counts, stage }: SyncRun,
  what: PartName,
  state: BulkProgress["state"],
  count: number,
  total: number,
): SyncProgress {
  return { counts, stage, done: count / total, bulk: { what, state, count } };
}
