import type { ShopAddress } from "../api/address.ts";
import { BulkFailure } from "./bulk-failure.ts";
import { type FileAddress, type FileDependencies, readFileBytes } from "./file-bytes.ts";
import { type ObjectBatch, readObjects } from "./file-lines.ts";
import type { BulkOperations } from "./operations.ts";

/** Reads the file of a complete operation, from a byte on. @throws BulkFailure; PlatformError */
export type ResultReader = (shop: ShopAddress, operation: string, from: number) => AsyncGenerator<ObjectBatch>;

export function createResultReader(operations: BulkOperations, files: FileDependencies): ResultReader {
  return async function* read(shop, operation, from) {
    async function addressOf(): Promise<FileAddress> {
      const { url, fileSize } = await found();
      if (url === null) throw new BulkFailure("the platform gives no address of the file");
      return { url, byteCount: sizeFrom(fileSize) };
    }

    async function found() {
      const node = await operations.find(shop, operation);
      if (node?.status !== "COMPLETED") throw new BulkFailure("the platform has the result no more");
      return node;
    }

    const { url, rootObjectCount } = await found();
    if (url === null && rootObjectCount === "0") return;
    yield* readObjects(readFileBytes(files, addressOf, from), from);
  };
}

/** @returns undefined if the platform does not say a size, or says none that makes sense */
function sizeFrom(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
