import type { Queries } from "./database.ts";
import type { StepLog } from "./upgrade-log.ts";
import type { UpgradeStep } from "./upgrade-steps.ts";

const BATCH_ROWS = 1_000;
const POLL_MS = 200;

/** Runs a step of an upgrade, or the rest of the step after an interruption. */
export async function runStep(step: UpgradeStep, log: StepLog): Promise<void> {
  if (step.kind === "index") return buildIndex(step.index, step.statement, log);
  if (step.kind === "backfill") return backfill(step.table, step.statement, log);
  await log.whenUnlocked(async (tx) => {
    if ((await log.lockUnlessDone(tx)) === undefined) return;
    await tx.script(step.script);
    await log.finish(tx);
  });
}

/** Builds an index. A build that was interrupted leaves an invalid index, which is dropped first. */
async function buildIndex(name: string, statement: string, log: StepLog): Promise<void> {
  const { db, sleep, whenUnlocked, lockUnlessDone } = log;
  const isDone = await whenUnlocked(async (tx) => {
    const progress = await lockUnlessDone(tx);
    if (progress !== undefined) await log.note(tx, `builds the index ${name}`, progress);
    return progress === undefined;
  });
  if (isDone) return;
  // After a program was killed, the server may continue its build.
  while (await isBeingBuilt(db, name)) await sleep(POLL_MS);
  const found = await db.get<{ isValid: boolean }>(
    'SELECT indisvalid AS "isValid" FROM pg_index WHERE indexrelid = to_regclass($1::text)',
    [name],
  );
  if (found?.isValid === false) await db.alone(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  if (found?.isValid !== true) await db.alone(statement.replace(/^CREATE (UNIQUE )?INDEX/, "$& CONCURRENTLY"));
  await whenUnlocked(async (tx) => {
    if ((await lockUnlessDone(tx)) !== undefined) await log.finish(tx);
  });
}

/** Runs a statement for all rows of a table, in the order of the primary key. Each batch is one transaction. */
async function backfill(table: string, statement: string, log: StepLog): Promise<void> {
  const { keys, rowCount } = await shapeOf(log.db, table);
  for (let isDone = false; !isDone; ) {
    const began = performance.now();
    isDone = await log.whenUnlocked(async (tx) => {
      const progress = await log.lockUnlessDone(tx);
      if (progress === undefined) return true;
      const { position } = progress;
      const query = batchQuery({ table, keys, statement, isFirst: position === null });
      const batch = await tx.get<{ rows: number; last: string }>(query, position === null ? [] : [position]);
      if (batch === undefined || batch.rows < BATCH_ROWS) {
        await log.finish(tx);
        return true;
      }
      const rows = progress.rows + batch.rows;
      await log.note(tx, `fills ${table}, ${rows} of about ${rowCount} rows`, {
        position: JSON.parse(batch.last) as string[],
        rows,
      });
      return false;
    });
    // Pauses for as long as the batch took, so that the server has time for other work.
    await log.sleep(performance.now() - began);
  }
}

async function isBeingBuilt(db: Queries, index: string): Promise<boolean> {
  const found = await db.get(
    `SELECT 1 FROM pg_stat_progress_create_index
     WHERE datname = current_database() AND index_relid = to_regclass($1::text)`,
    [index],
  );
  return found !== undefined;
}

interface KeyColumn {
  name: string;
  type: string;
}

/** Reads the primary key of a table, and the approximate number of its rows. */
async function shapeOf(db: Queries, table: string): Promise<{ keys: KeyColumn[]; rowCount: number }> {
  const keys = await db.all<KeyColumn>(
    `SELECT attname::text AS name, format_type(atttypid, NULL) AS type
     FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey)
     WHERE indrelid = to_regclass($1::text) AND indisprimary ORDER BY array_position(indkey::int2[], attnum)`,
    [table],
  );
  const found = await db.get<{ rowCount: number }>(
    'SELECT greatest(reltuples, 0)::float8 AS "rowCount" FROM pg_class WHERE oid = to_regclass($1::text)',
    [table],
  );
  return { keys, rowCount: found?.rowCount ?? 0 };
}

/** Returns the query of a batch. `statement` reads the keys of the batch's rows from the CTE `batch`. */
function batchQuery(options: { table: string; keys: KeyColumn[]; statement: string; isFirst: boolean }): string {
  const { table, keys, statement, isFirst } = options;
  const columns = keys.map(({ name }) => name).join(", ");
  const last = keys.map(({ type }, number) => `($1::text[])[${number + 1}]::${type}`).join(", ");
  return `WITH batch AS MATERIALIZED (
      SELECT ${columns} FROM ${table} ${isFirst ? "" : `WHERE (${columns}) > (${last})`}
      ORDER BY ${columns} LIMIT ${BATCH_ROWS}
    ), work AS (
      ${statement}
    )
    SELECT count(*)::float8 AS rows, (
      SELECT json_build_array(${keys.map(({ name }) => `${name}::text`).join(", ")})::text FROM batch
      ORDER BY ${keys.map(({ name }) => `${name} DESC`).join(", ")} LIMIT 1
    ) AS last FROM batch`;
}
