import type { SyncRun } from "../../domain/platform/sync.ts";
import type { SyncStore } from "../port/syncs.ts";
import type { Database } from "./database.ts";

interface LastSync {
  startedAt: number | null;
  endedAt: number;
  changed: number;
}

export function syncStore(db: Database): SyncStore {
  return {
    async unfinished(shopId, kind) {
      const found = await db.get<{ run: string | null }>(
        "SELECT run FROM syncs WHERE shop_id = $1::bigint AND kind = $2::text",
        [shopId, kind],
      );
      return typeof found?.run === "string" ? (JSON.parse(found.run) as SyncRun) : undefined;
    },

    async lastComplete(shopId, kind) {
      return db.get<LastSync>(
        `SELECT last_started_at::float8 AS "startedAt", last_ended_at::float8 AS "endedAt",
           coalesce(last_changed, 0)::float8 AS changed
         FROM syncs WHERE shop_id = $1::bigint AND kind = $2::text AND last_ended_at IS NOT NULL`,
        [shopId, kind],
      );
    },

    async save(shopId, kind, run) {
      await db.run(
        `INSERT INTO syncs (shop_id, kind, run) VALUES ($1::bigint, $2::text, $3::text)
         ON CONFLICT (shop_id, kind) DO UPDATE SET run = excluded.run`,
        [shopId, kind, JSON.stringify(run)],
      );
    },

    async complete(shopId, kind, startedAt, changed, now) {
      await db.run(
        `INSERT INTO syncs (shop_id, kind, last_started_at, last_changed, last_ended_at)
         VALUES ($1::bigint, $2::text, $3::bigint, $4::bigint, $5::bigint)
         ON CONFLICT (shop_id, kind) DO UPDATE SET run = NULL,
           last_started_at = coalesce(excluded.last_started_at, syncs.last_started_at),
           last_changed = excluded.last_changed, last_ended_at = excluded.last_ended_at`,
        [shopId, kind, startedAt ?? null, changed, now],
      );
    },
  };
}
