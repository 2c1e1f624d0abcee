import type { Database } from "bun:sqlite";
import { readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { version } from "../../../package.json";
import { SdsError } from "../../domain/error.ts";
import { syncFolder } from "../files/data-folder.ts";
import { reasonOf } from "../files/disk-space.ts";
import { draftPath, removeDrafts } from "../files/drafts.ts";
import { makeOwnedFile } from "../files/file-owner.ts";
import { checkCopy, syncFile } from "./copy-check.ts";
import { upgradeCopyPath } from "./data-files.ts";

/**
 * Copies a database before this version upgrades it. The copy is checked and synced. It replaces the copy of an earlier
 * upgrade to this version.
 * @param db a connection that has locked the database for itself
 * @returns the path of the copy
 * @throws SdsError `failed` if the copy fails. The message explains how to upgrade without a copy.
 */
export function keepUpgradeCopy(db: Database, database: string, random: (bytes: number) => Uint8Array): string {
  const folder = dirname(database);
  const copy = `${upgradeCopyPath(database)}${version}`;
  const draft = draftPath(copy, random);
  try {
    removeDrafts(copy);
    makeOwnedFile(draft);
    db.query("VACUUM INTO ?").run(draft);
    checkCopy(draft, draft);
    syncFile(draft);
    renameSync(draft, copy);
    syncFolder(folder);
    return copy;
  } catch (thrown) {
    throw new SdsError(
      "failed",
      `${database} is from an older sds, and no copy of it can be kept before the upgrade: ` +
        `${reasonOf(thrown, folder)}. Remedy that, or make a backup elsewhere with \`sds backup\` and run this again ` +
        "with --no-copy; nothing was changed",
      { cause: thrown },
    );
  } finally {
    for (const end of ["", "-journal"]) rmSync(`${draft}${end}`, { force: true });
  }
}

/** Removes the copies of earlier upgrades. @param newest the copy to keep, if this upgrade made one */
export function removeUpgradeCopies(database: string, newest: string | undefined): void {
  const folder = dirname(database);
  for (const name of readdirSync(folder))
    if (name.startsWith(basename(upgradeCopyPath(database))) && join(folder, name) !== newest)
      rmSync(join(folder, name), { force: true });
}
