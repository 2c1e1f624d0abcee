import { chmodSync, existsSync, mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endWithUs } from "./end-with-us.ts";

/** A file system in memory, if the machine has one: on a disk each commit takes milliseconds. */
const MEMORY = "/dev/shm";
const NEEDED_BYTES = 2 * 2 ** 30;

let folder: string | undefined;

/** The folder of this test process, which is removed when the process ends. */
export function ownFolder(): string {
  if (folder === undefined) {
    folder = makeQuickFolder("sds-test-");
    // Other users need access: tests also run programs as another user, in a subfolder.
    chmodSync(folder, 0o711);
    endWithUs(folder);
  }
  return folder;
}

/** Makes a folder in memory, or on the disk if memory has too little room. TMPDIR overrides both. */
export function makeQuickFolder(prefix: string): string {
  const isInMemory = process.env["TMPDIR"] === undefined && hasRoom(MEMORY);
  return mkdtempSync(join(isInMemory ? MEMORY : tmpdir(), prefix));
}

function hasRoom(place: string): boolean {
  if (!existsSync(place)) return false;
  const { bavail, bsize } = statfsSync(place);
  return bavail * bsize >= NEEDED_BYTES;
}
