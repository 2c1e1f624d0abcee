import type { SyncRun } from "../../domain/platform/sync.ts";
import type { SyncStore } from "../port/syncs.ts";
import { type QuietDatabase, sql } from "./quiet-database.ts";

interface LastSync {
  startedAt: number | null;
  endedAt: number;
  changed: number;
}

export function syncStore(db: QuietDatabase): SyncStore {
  return {
    async unfinished(shopId, kind) {
      const stored = await db.get<{ run: string }>(
        sql`SELECT run FROM syncs WHERE shop_id = ${shopId} AND kind = ${kind} AND run IS NOT NULL`,
      );
      return stored && (JSON.parse(stored.run) as SyncRun);
    },

    async lastComplete(shopId, kind) {
      return db.get<LastSync>(
        sql`SELECT last_started_at AS "startedAt", last_ended_at AS "endedAt", coalesce(last_changed, 0) AS changed
          FROM syncs WHERE shop_id = ${shopId} AND kind = ${kind} AND last_ended_at IS NOT NULL`,
      );
    },

    async save(shopId, kind, run) {
      await db.run(
        sql`INSERT INTO syncs (shop_id, kind, run) VALUES (${shopId}, ${kind}, ${JSON.stringify(run)})
          ON CONFLICT (shop_id, kind) DO UPDATE SET run = excluded.run`,
      );
    },

    async complete(shopId, kind, startedAt, changed, now) {
      await db.run(
        sql`INSERT INTO syncs (shop_id, kind, last_started_at, last_changed, last_ended_at)
          VALUES (${shopId}, ${kind}, ${startedAt ?? null}, ${changed}, ${now})
          ON CONFLICT (shop_id, kind) DO UPDATE SET run = NULL,
            last_started_at = coalesce(excluded.last_started_at, syncs.last_started_at),
            last_changed = excluded.last_changed, last_ended_at = excluded.last_ended_at`,
      );
    },
  };
}
