import type { DiskFile, Operation } from "./recording.ts";

/** The smallest unit that a disk writes as a whole. Bytes. */
const SECTOR = 512;

/** Files with their synced content, and the later writes that a power cut may lose. */
export interface Disk {
  apply(operation: Operation): void;
  /** Returns the files as a power cut now would leave them. Each unsynced write is kept, lost or torn at random. */
  cut(): Record<DiskFile, Buffer>;
}

type Change = Extract<Operation, { do: "write" | "truncate" }>;

export function createDisk(database: Buffer): Disk {
  const durable: Record<DiskFile, Buffer> = { "sds.db": database, "sds.db-wal": Buffer.alloc(0) };
  const pending: Record<DiskFile, Change[]> = { "sds.db": [], "sds.db-wal": [] };

  return {
    apply(operation) {
      if (operation.do === "answer") return;
      const { file } = operation;
      if (operation.do !== "sync") {
        pending[file].push(operation);
        return;
      }
      durable[file] = pending[file].reduce(changed, durable[file]);
      pending[file] = [];
    },
    cut() {
      const after = (file: DiskFile) => pending[file].flatMap(partOf).reduce(changed, Buffer.from(durable[file]));
      return { "sds.db": after("sds.db"), "sds.db-wal": after("sds.db-wal") };
    },
  };
}

/** Keeps, loses or tears a change at random, as a power cut does. */
function partOf(change: Change): Change[] {
  const fate = Math.random();
  if (fate < 0.4) return [];
  if (fate < 0.8 || change.do === "truncate") return [change];
  const sectors = Math.floor(Math.random() * (change.bytes.length / SECTOR));
  return [{ ...change, bytes: change.bytes.subarray(0, sectors * SECTOR) }];
}

function changed(file: Buffer, change: Change): Buffer {
  const length = change.do === "truncate" ? change.length : Math.max(file.length, change.at + change.bytes.length);
  const after = length === file.length ? file : Buffer.alloc(length);
  if (after !== file) file.copy(after, 0, 0, length);
  if (change.do === "write") change.bytes.copy(after, change.at);
  return after;
}
