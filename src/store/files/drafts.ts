import { closeSync, linkSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf } from "../../domain/error.ts";

/**
 * A file that must be there as a whole or not at all is written as a draft beside its place first. A draft has a random
 * name, so what a killed process left stops nobody.
 */
export function draftPath(target: string, random: (bytes: number) => Uint8Array): string {
  return `${target}.${random(8).toHex()}.partial`;
}

/** Whether a name is that of a draft, of whatever file. */
export function isDraftName(name: string): boolean {
  return /\.[0-9a-f]{16}\.partial$/.test(name);
}

/**
 * What draftPath adds, and what SQLite adds to that. Drafts of older keys ended with `.new`, after a process id too.
 */
const DRAFT_END = /^\.(?:[0-9a-f]{16}\.partial(?:-\w+)?|[0-9a-f]+\.new)$/;

/** Removes all drafts of one file. Only who knows that nobody writes one may call it. */
export function removeDrafts(target: string): void {
  const [folder, own] = [dirname(target), basename(target)];
  try {
    for (const name of readdirSync(folder))
      if (name.startsWith(own) && DRAFT_END.test(name.slice(own.length))) rmSync(join(folder, name), { force: true });
  } catch (thrown) {
    // In a folder that this user cannot read or write, no draft is ours.
    if (!["EACCES", "EPERM", "EROFS"].includes(codeOf(thrown))) throw thrown;
  }
}

/** What a file system without links says, as that of a USB stick. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/**
 * Puts a finished draft into its place if no file is there.
 * @throws Error with the code EEXIST if one is
 */
export function publishDraft(draft: string, target: string, link: typeof linkSync = linkSync): void {
  try {
    link(draft, target);
  } catch (thrown) {
    if (!NO_LINKS.includes(codeOf(thrown))) throw thrown;
    renameWithoutLinks(draft, target);
  }
}

/** Takes the name with an empty file first: a rename alone would overwrite what somebody else made meanwhile. */
function renameWithoutLinks(draft: string, target: string): void {
  closeSync(openSync(target, "wx", 0o600));
  try {
    renameSync(draft, target);
  } catch (thrown) {
    rmSync(target, { force: true });
    throw thrown;
  }
}
