import { StoreError } from "../port/store-error.ts";
import type { Database, Queries } from "./database.ts";
import { sqlState } from "./errors.ts";
import { readMeta, writeMeta } from "./migrate.ts";
import type { TransactionQueries } from "./transaction.ts";

/** Row of `meta` with the progress of an upgrade. */
const PROGRESS = "upgrade";
/** How long a step may wait for a lock. Meanwhile other transactions wait behind the step. */
const LOCK_MS = 250;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const REPORT_INTERVAL_MS = 10_000;

interface UpgradeProgress {
  /** The version that the migration makes. */
  schema: number;
  /** Number of finished steps. */
  done: number;
  /** Describes the current work for people. */
  text: string;
  /** Key of the last row that the backfill has processed. `rows` is the number of processed rows. */
  position: string[] | null;
  rows: number;
}

export interface StepLogOptions {
  sleep: (ms: number) => Promise<void>;
  /** Called during an upgrade, with a description of the current work. A step calls it at most once in ten seconds. */
  onStep?: ((text: string) => void) | undefined;
}

interface StepPosition {
  /** The version that the migration makes. */
  schema: number;
  /** Number of steps before this step. */
  index: number;
  isLast: boolean;
}

export type StepLog = ReturnType<typeof createStepLog>;

export async function readProgress(queries: Queries): Promise<UpgradeProgress | undefined> {
  const value = await readMeta(queries, PROGRESS);
  return value === undefined ? undefined : (JSON.parse(value) as UpgradeProgress);
}

/** Makes the log of a step. The log stores the step's progress in the transactions of the step. */
export function createStepLog(
  db: Database,
  { schema, index, isLast }: StepPosition,
  { sleep, onStep }: StepLogOptions,
) {
  let reportedAt = Number.NEGATIVE_INFINITY;
  const textOf = (text: string) => `schema ${schema}, step ${index + 1}: ${text}`;

  function report(text: string): void {
    if (performance.now() - reportedAt < REPORT_INTERVAL_MS) return;
    reportedAt = performance.now();
    onStep?.(textOf(text));
  }

  return {
    db,
    sleep,

    /** Runs a short transaction. Repeats it while other transactions have locks that it needs. */
    async whenUnlocked<T>(work: (tx: TransactionQueries) => Promise<T>): Promise<T> {
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
        try {
          return await db.transaction(async (tx) => {
            await tx.script(`SET LOCAL lock_timeout = '${LOCK_MS}ms'`);
            return work(tx);
          });
        } catch (thrown) {
          if (!(thrown instanceof StoreError && sqlState(thrown.cause) === "55P03")) throw thrown;
          report("waits for a transaction that has a lock");
          await sleep(pauseMs);
        }
      }
    },

    /**
     * Locks the step. Otherwise a program that lost the lock of upgrades could repeat work.
     * @returns the progress of the step; undefined if the step is done
     */
    async lockUnlessDone(tx: Queries): Promise<Pick<UpgradeProgress, "position" | "rows"> | undefined> {
      const row = await tx.get<{ value: string }>("SELECT value FROM meta WHERE name = 'schema' FOR UPDATE");
      const noted = await readProgress(tx);
      const progress = noted?.schema === schema ? noted : { done: 0, position: null, rows: 0 };
      if (Number(row?.value) >= schema || progress.done > index) return undefined;
      return progress.done === index ? progress : { position: null, rows: 0 };
    },

    async note(
      tx: Queries,
      text: string,
      { position, rows }: Pick<UpgradeProgress, "position" | "rows">,
    ): Promise<void> {
      report(text);
      await writeMeta(tx, PROGRESS, JSON.stringify({ schema, done: index, text: textOf(text), position, rows }));
    },

    /** Records that the step is done. After the last step of a migration, also records the new schema version. */
    async finish(tx: Queries): Promise<void> {
      if (isLast) {
        await tx.run("DELETE FROM meta WHERE name = $1::text", [PROGRESS]);
        await writeMeta(tx, "schema", String(schema));
        return;
      }
      const next = { schema, done: index + 1, text: textOf("done"), position: null, rows: 0 };
      await writeMeta(tx, PROGRESS, JSON.stringify(next));
    },
  };
}
