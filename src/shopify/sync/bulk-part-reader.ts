import type { BulkProgress } from "../../domain/platform/load-progress.ts";
import type { BulkPart, SyncRun } from "../../domain/platform/sync.ts";
import { PlatformError } from "../api/platform-error.ts";
import { BulkFailure, type FileServices } from "../bulk/file-bytes.ts";
import { type BulkServices, beginBulkOperation, findBulkOperation, waitForBulkOperation } from "../bulk/operations.ts";
import { type ObjectBatch, readResult } from "../bulk/result-file.ts";
import { type ActiveRun, forgetCustomers } from "./progress.ts";

type PartName = keyof NonNullable<SyncRun["bulk"]>;

/** Stores the objects of a part. */
interface PartTarget {
  /** Called before the first batch. */
  begin?(part: BulkPart): Promise<void>;
  /** Stores a batch. @returns the number of customers or orders in the batch */
  store(part: BulkPart, batch: ObjectBatch): Promise<number>;
}

/** Thrown if another load of the shop stages the orders now. */
export class OtherLoad extends BulkFailure {}

/** Starts all operations at once: they run while the first file is read. @throws errors that are not bulk failures */
export async function beginBulkParts(services: BulkServices, { shop, run, save }: ActiveRun): Promise<void> {
  for (const part of Object.values(run.bulk ?? {})) {
    if (part.operation !== null) continue;
    try {
      part.operation = await beginBulkOperation(services, shop, part.query);
      await save();
    } catch (thrown) {
      // A failure is ignored, because `readBulkPart` tries again. By then, another operation may have ended, and the
      // platform may accept this one.
      if (!isBulkFailure(thrown)) throw thrown;
    }
  }
}

/** Reads a part's bulk operation. @returns false if pages must be read @throws errors that are not bulk failures */
export async function readBulkPart(
  services: BulkServices & FileServices,
  active: ActiveRun,
  name: PartName,
  target: PartTarget,
): Promise<boolean> {
  const { shop, run, save } = active;
  const part = run.bulk?.[name];
  if (part === undefined) return false;
  try {
    const operation = await completeOperation(services, active, name, part);
    await target.begin?.(part);
    for await (const batch of readResult(services, shop, operation, part.offset)) {
      part.count += await target.store(part, batch);
      part.offset = batch.end;
      await save();
      showProgress(active, name, "reading", part.count, part.total);
    }
    return true;
  } catch (thrown) {
    if (!isBulkFailure(thrown)) throw thrown;
    const isOther = thrown instanceof OtherLoad;
    const message = isOther
      ? "another load of the shop runs; this one reads page by page"
      : "cannot read with a bulk operation of the platform; reading page by page";
    services.log.warn(message, { shop: shop.domain, what: name, ...(!isOther && { error: thrown.message }) });
    // This deletion is saved with the next page. If that page fails too, the next run tries the bulk operation again.
    delete run.bulk?.[name];
    return false;
  }
}

/** Waits for the file of a part. Starts a new operation if an old file has expired. @returns the operation's gid */
async function completeOperation(services: BulkServices, active: ActiveRun, name: PartName, part: BulkPart) {
  const { shop, run, save } = active;
  if (part.operation !== null && (await findBulkOperation(services, shop, part.operation)) === undefined) {
    Object.assign(part, { operation: null, offset: 0, count: 0, stage: null });
    if (name === "customers") forgetCustomers(run);
  }
  if (part.operation === null) {
    part.operation = await beginBulkOperation(services, shop, part.query);
    await save();
  }
  await waitForBulkOperation(services, shop, part.operation, (objectCount) => {
    showProgress(active, name, "preparing", objectCount, part.total);
  });
  return part.operation;
}

/** Whether to read pages instead after this error. An outage needs no other handling: reading pages then fails too. */
function isBulkFailure(thrown: unknown): thrown is BulkFailure | PlatformError {
  return thrown instanceof BulkFailure || thrown instanceof PlatformError;
}

function showProgress(
  { run: { counts, stage }, onProgress }: ActiveRun,
  what: PartName,
  state: BulkProgress["state"],
  count: number,
  total: number,
): void {
  onProgress({ counts, stage, done: count / total, bulk: { what, state, count } });
}
