import { closeSync, linkSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf } from "../../domain/error.ts";

/**
 * Returns a path for a draft. A file is first written as a draft, so its target is either complete or missing. The name
 * is random, so the draft of a killed process blocks no other process.
 */
export function draftPath(target: string, random: (bytes: number) => Uint8Array): string {
  return `${target}.${random(8).toHex()}.partial`;
}

/** Whether this is the name of a draft, whatever its target. */
export function isDraftName(name: string): boolean {
  return /\.[0-9a-f]{16}\.partial$/.test(name);
}

/**
 * Matches what a draft's name has after the target's name: the suffix of draftPath, and maybe one of SQLite's suffixes.
 * Also matches drafts of the key file that older versions wrote, such as `.PID.new`.
 */
const DRAFT_END = /^\.(?:[0-9a-f]{16}\.partial(?:-\w+)?|[0-9a-f]+\.new)$/;

/** Removes all drafts of a file. Call this only while no process writes a draft of the file. */
export function removeDrafts(target: string): void {
  const [folder, own] = [dirname(target), basename(target)];
  try {
    for (const name of readdirSync(folder))
      if (name.startsWith(own) && DRAFT_END.test(name.slice(own.length))) rmSync(join(folder, name), { force: true });
  } catch (thrown) {
    // A user who cannot read or write this folder has left no draft in it, so there is nothing to remove.
    if (!["EACCES", "EPERM", "EROFS"].includes(codeOf(thrown))) throw thrown;
  }
}

/** Error codes of file systems without hard links, such as FAT. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/** Renames a finished draft to its target. @throws Error with the code EEXIST if the target exists */
export function publishDraft(draft: string, target: string, link: typeof linkSync = linkSync): void {
  try {
    link(draft, target);
  } catch (thrown) {
    if (!NO_LINKS.includes(codeOf(thrown))) throw thrown;
    renameWithoutLinks(draft, target);
  }
}

/**
 * Renames without hard links. Reserves the target's name with an empty file first, because a rename alone could
 * overwrite another process's file.
 */
function renameWithoutLinks(draft: string, target: string): void {
  closeSync(openSync(target, "wx", 0o600));
  try {
    renameSync(draft, target);
  } catch (thrown) {
    rmSync(target, { force: true });
    throw thrown;
  }
}
