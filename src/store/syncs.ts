import { and, eq } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { SyncKind, SyncRun } from "../domain/sync.ts";
import { syncs } from "./schema.ts";

/** The last run of a kind that came to its end. Times in epoch milliseconds. */
interface CompleteSync {
  startedAt: number;
  endedAt: number;
  /** Rows that it changed. */
  changed: number;
}

export interface SyncStore {
  /** A run that began and did not end. */
  unfinished(shopId: number, kind: SyncKind): Promise<SyncRun | undefined>;
  lastComplete(shopId: number, kind: SyncKind): Promise<CompleteSync | undefined>;
  /** Notes how far a run is. Two runs at once do each other no harm: what either noted, it had applied. */
  save(shopId: number, kind: SyncKind, run: SyncRun): Promise<void>;
  /** Ends a run that read everything. */
  complete(shopId: number, kind: SyncKind, run: SyncRun, now: number): Promise<void>;
}

export function syncStore(db: BunSQLiteDatabase): SyncStore {
  const of = (shopId: number, kind: SyncKind) =>
    db
      .select()
      .from(syncs)
      .where(and(eq(syncs.shopId, shopId), eq(syncs.kind, kind)))
      .limit(1)
      .get();

  function set(shopId: number, kind: SyncKind, values: Partial<typeof syncs.$inferInsert>): void {
    db.insert(syncs)
      .values({ shopId, kind, ...values })
      .onConflictDoUpdate({ target: [syncs.shopId, syncs.kind], set: values })
      .run();
  }

  return {
    async unfinished(shopId, kind) {
      return of(shopId, kind)?.run ?? undefined;
    },

    async lastComplete(shopId, kind) {
      const { lastStartedAt, lastEndedAt, lastChanged } = of(shopId, kind) ?? {};
      if (typeof lastStartedAt !== "number" || typeof lastEndedAt !== "number") return undefined;
      return { startedAt: lastStartedAt, endedAt: lastEndedAt, changed: lastChanged ?? 0 };
    },

    async save(shopId, kind, run) {
      set(shopId, kind, { run });
    },

    async complete(shopId, kind, run, now) {
      set(shopId, kind, { run: null, lastStartedAt: run.startedAt, lastEndedAt: now, lastChanged: run.counts.changed });
    },
  };
}
