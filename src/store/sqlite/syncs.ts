import { and, eq } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { SyncKind } from "../../domain/platform/sync.ts";
import type { SyncStore } from "../port/syncs.ts";
import { syncs } from "./schema.ts";

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
      set(shopId, kind, {
        run: null,
        lastEndedAt: now,
        lastChanged: changed,
        ...(startedAt !== undefined && { lastStartedAt: startedAt }),
      });
    },
  };
}
