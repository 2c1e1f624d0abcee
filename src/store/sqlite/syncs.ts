import { and, eq } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { SyncKind, SyncRun } from "../../domain/sync.ts";
import { syncs } from "./schema.ts";

/** The last run of a kind that came to its end. Times in epoch milliseconds. */
interface CompleteSync {
  /** Up to when all is seen; null if no run of this kind ever saw all. */
  startedAt: number | null;
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
  /** Ends a run. @param startedAt up to when all is seen now; undefined where the run left a gap before it, and the mark stays */
  complete(shopId: number, kind: SyncKind, startedAt: number | undefined, changed: number, now: number): Promise<void>;
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
      if (typeof lastEndedAt !== "number") return undefined;
      return { startedAt: lastStartedAt ?? null, endedAt: lastEndedAt, changed: lastChanged ?? 0 };
    },

    async save(shopId, kind, run) {
      set(shopId, kind, { run });
    },

    async complete(shopId, kind, startedAt, changed, now) {
      set(shopId, kind, { run: null, lastEndedAt: now, lastChanged: changed, ...(startedAt !== undefined && { lastStartedAt: startedAt }) });
    },
  };
}
