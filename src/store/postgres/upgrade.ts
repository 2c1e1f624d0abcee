import { SdsError } from "../../domain/error.ts";
import type { Database } from "./database.ts";
import { APPLICATION, checkVersion, writeMeta } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { createStepLog, readProgress, type StepLogOptions } from "./upgrade-log.ts";
import { runStep } from "./upgrade-run.ts";
import { stepsOf } from "./upgrade-steps.ts";

/** Number of the advisory lock of upgrades. It is arbitrary, and must never change. */
const UPGRADE_LOCK = 0x73647331;
/** Interval at which a waiting program checks whether another program's upgrade has ended. */
const POLL_MS = 200;

interface MigrateOptions extends StepLogOptions {
  migrations?: readonly string[];
  /** How long to wait while another program upgrades the database. Default: until the upgrade has ended. */
  waitMs?: number | undefined;
}

/**
 * Makes the tables in one transaction, or upgrades them in steps. If several programs try at once, one upgrades and the
 * others wait. Programs of the earlier version can work meanwhile.
 * @param db has two connections and long limits, because an upgrade may take hours
 * @throws SdsError `unavailable` if another program's upgrade takes longer than `waitMs`
 */
export async function migrate(db: Database, name: string, options: MigrateOptions): Promise<void> {
  const { sleep, migrations = MIGRATIONS, waitMs = Number.POSITIVE_INFINITY, onStep } = options;
  const began = performance.now();
  let reported = "";
  while (!(await upgradeIfFirst(db, name, options))) {
    const version = await checkVersion(db, name);
    if (version >= migrations.length) return;
    const progress = version === 0 ? undefined : await readProgress(db);
    const text = `another sds upgrades ${name}: ${progress?.text ?? "it begins"}`;
    if (performance.now() - began > waitMs)
      throw new SdsError("unavailable", `${text}. Nodes of the previous version keep working. Try again later`);
    if (text !== reported) onStep?.(text);
    reported = text;
    await sleep(POLL_MS);
  }
}

/**
 * Upgrades the database, unless another program is upgrading it. Never waits for the lock. A waiting statement holds a
 * snapshot, and the other program's CREATE INDEX CONCURRENTLY would wait for the snapshot. The lock ends with its
 * transaction, even after a kill and behind a pooler.
 * @returns whether this program had the lock. If it had the lock, the database is upgraded now.
 */
async function upgradeIfFirst(db: Database, name: string, options: MigrateOptions): Promise<boolean> {
  const { migrations = MIGRATIONS } = options;
  return db.transaction(async (lock) => {
    const got = await lock.get<{ got: boolean }>("SELECT pg_try_advisory_xact_lock($1::bigint) AS got", [UPGRADE_LOCK]);
    if (got?.got !== true) return false;
    await lock.script("SET LOCAL idle_in_transaction_session_timeout = 0");
    // Runs on the other connection: a read in this transaction would keep a table lock that could block a step.
    const version = await checkVersion(db, name);
    if (version === 0) {
      for (const script of migrations) await lock.script(script);
      await writeMeta(lock, "application", APPLICATION);
      await writeMeta(lock, "schema", String(migrations.length));
      return true;
    }
    for (let schema = version + 1; schema <= migrations.length; schema += 1) {
      const steps = stepsOf(migrations[schema - 1] ?? "");
      for (const [index, step] of steps.entries()) {
        await runStep(step, createStepLog(db, { schema, index, isLast: index === steps.length - 1 }, options));
      }
    }
    return true;
  });
}
