import { type JsonObject, parseObject } from "../../lib/json.ts";
import type { ShopAddress } from "../api/address.ts";
import type { BulkOperationNode } from "../api/operations/bulk.ts";
import { BulkFailure, type FileServices, readFileBytes } from "./file-bytes.ts";
import { type BulkServices, findBulkOperation } from "./operations.ts";

/** Objects of a file, one from each line. */
export interface ObjectBatch {
  objects: JsonObject[];
  /** The byte of the file at which the next batch begins. */
  end: number;
}

/** Limit for a line. A customer or an order line has a few kilobytes. */
const MAX_LINE_BYTES = 1024 * 1024;
/** Maximum number of lines and bytes of a batch. Both are low, because other work waits for the batch's transaction. */
const LINES_PER_BATCH = 500;
const BYTES_PER_BATCH = 1024 * 1024;
const NEWLINE = 10;

/** Reads the file of a complete operation from byte `from` on. @throws BulkFailure; PlatformError */
export async function* readResult(
  services: BulkServices & FileServices,
  shop: ShopAddress,
  id: string,
  from: number,
): AsyncGenerator<ObjectBatch> {
  async function findComplete(): Promise<BulkOperationNode> {
    const operation = await findBulkOperation(services, shop, id);
    if (operation?.status !== "COMPLETED") throw new BulkFailure("the platform no longer has the result");
    return operation;
  }

  async function addressOf() {
    const { url, fileSize } = await findComplete();
    if (url === null) throw new BulkFailure("the platform gives no address of the file");
    // The size may be missing, or may not be a number.
    return { url, byteCount: /^\d{1,15}$/.test(fileSize ?? "") ? Number(fileSize) : undefined };
  }

  const { url, rootObjectCount } = await findComplete();
  if (url === null && rootObjectCount === "0") return;
  yield* readObjects(readFileBytes(services, addressOf, from), from);
}

/** Reads the objects of a JSONL file. @param from the byte at which the chunks begin @throws BulkFailure */
export async function* readObjects(chunks: AsyncIterable<Uint8Array>, from: number): AsyncGenerator<ObjectBatch> {
  let batch: ObjectBatch = { objects: [], end: from };
  let batchBegin = from;
  /** The parts of a line that is not complete yet. */
  let parts: Uint8Array[] = [];
  let partBytes = 0;

  function keep(part: Uint8Array): void {
    partBytes += part.length;
    if (partBytes > MAX_LINE_BYTES) throw new BulkFailure("a line of the file is too long");
    parts.push(part);
  }

  function endLine(newlineBytes: number): void {
    const text = Buffer.concat(parts).toString();
    batch.end += partBytes + newlineBytes;
    parts = [];
    partBytes = 0;
    if (text.trim() === "") return;
    const object = parseObject(text);
    if (object === undefined) throw new BulkFailure("a line of the file is not a JSON object");
    batch.objects.push(object);
  }

  function isFull(): boolean {
    return batch.objects.length >= LINES_PER_BATCH || batch.end - batchBegin >= BYTES_PER_BATCH;
  }

  for await (const chunk of chunks) {
    let begin = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, begin)) {
      keep(chunk.subarray(begin, end));
      endLine(1);
      begin = end + 1;
      if (!isFull()) continue;
      yield batch;
      batch = { objects: [], end: batch.end };
      batchBegin = batch.end;
    }
    keep(chunk.slice(begin));
  }
  // The last line may have no newline.
  if (partBytes > 0) endLine(0);
  if (batch.end > batchBegin) yield batch;
}
