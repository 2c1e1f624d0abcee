import { bytesText } from "../../lib/text.ts";
import { isoUtc } from "../../lib/time.ts";
import type { Checkup, StoreProblem } from "../../store/port/checkup.ts";
import { type Check, type DataCheck, type Finding, failed, type Patient, passed } from "./check.ts";

/** Time limit of the search for damage. */
const SEARCH_MS = 8_000;
const DAY_MS = 86_400_000;
const BACKUP_EVERY_MS = 2 * DAY_MS;
const CORRECT = "correct this error, and run `sds doctor` again";
const RESTORE = "stop `sds serve`, and restore your newest good copy: `sds restore FILE`";

const REMEDIES: Record<StoreProblem, string> = {
  missing: "name the right folder with --data or SDS_DATA; for a new one, add a shop with `sds shop add`",
  newer:
    "install that version of sds or a later one; to go back, stop `sds serve`, and restore a copy from before the " +
    "upgrade: `sds restore FILE`",
  damaged: RESTORE,
  unfinished: "run `sds copy` again; any other command finishes a restore",
  unreachable: CORRECT,
  unusable: CORRECT,
};

export const DATABASE_CHECKS: readonly Check[] = [{ name: "database", run: checkDatabase }];

export const DATA_CHECKS: readonly DataCheck[] = [
  { name: "damage", run: checkDamage },
  { name: "durability", run: checkDurability },
  { name: "backup", run: checkBackup },
];

async function checkDatabase({ config: { database }, opened }: Patient): Promise<Finding> {
  if ("problem" in opened) return failed(opened.detail, REMEDIES[opened.problem]);
  const { version, isCurrent } = opened.checkup.schema;
  const upgrade = isCurrent
    ? ""
    : ", which the next start of `sds serve` upgrades; other checks of its data follow then";
  return passed(`${database === null ? "SQLite" : "PostgreSQL"}, schema ${version}${upgrade}`);
}

async function checkDamage(_: Checkup, { config, findDamage }: Patient): Promise<Finding> {
  if (config.database !== null) return passed("the server looks after its files (amcheck, checksums)");
  const signal = AbortSignal.timeout(SEARCH_MS);
  try {
    const damage = await findDamage(signal);
    return damage === undefined ? passed("none found") : failed(`the database is damaged: ${damage}`, RESTORE);
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
    return passed(`none found in ${SEARCH_MS / 1_000} seconds; \`sds backup\` searches the whole database`);
  }
}

async function checkDurability(checkup: Checkup): Promise<Finding> {
  const unsafe = await checkup.unsafeSettings();
  if (unsafe.length === 0) return passed("what was answered survives a power cut");
  return failed(
    `the server has ${unsafe.join(" and ")}, so a power cut loses what was answered`,
    "set it to on, for this database or in postgresql.conf, and reload the server",
  );
}

async function checkBackup(checkup: Checkup, { config, now }: Patient): Promise<Finding> {
  if (config.database !== null)
    return passed("made by the server's own tools, which sds cannot see: check pg_dump or pgBackRest there");
  if (checkup.isReplicated) return passed("Litestream copies the database: check its own status");
  const { lastBackupAt, bytes } = await checkup.figures();
  const since = lastBackupAt ?? (await checkup.shops.firstShopAt()) ?? now();
  const last =
    lastBackupAt === null ? "sds knows no backup of this database" : `the last was at ${isoUtc(lastBackupAt)}`;
  if (now() - since <= BACKUP_EVERY_MS) return passed(last);
  return failed(
    `no backup for two days: ${last}`,
    `run \`sds backup FILE\` each night (docs/operating.md, Backup); a copy needs ${bytesText(bytes)} at most`,
  );
}
