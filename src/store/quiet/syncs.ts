import type { SQL } from "drizzle-orm";
import type { LoadProgress } from "../../domain/platform/load-progress.ts";
import type { SyncRun } from "../../domain/platform/sync.ts";
import type { ConnectedShop } from "../port/connections.ts";
import type { SyncStore } from "../port/syncs.ts";
import { type QuietDatabase, sql, tx } from "./quiet-database.ts";

interface LastSync {
  startedAt: number | null;
  endedAt: number;
  changed: number;
}

/**
 * Maximum duration of a claim. If a claim ends further in the future than this, it was made before the clock was set
 * back. Such a claim is ignored.
 */
const LONGEST_CLAIM_MS = 60_000;

/** Returns an SQL condition that is true if a process has claimed the load. */
const isClaimed = (now: number) =>
  sql`holder IS NOT NULL AND held_until > ${now} AND held_until <= ${now + LONGEST_CLAIM_MS}`;

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
      await db.transaction(function* () {
        // Updates the connection first, as `storeConnection` does. The opposite order could cause a deadlock.
        if (kind === "full")
          yield* tx.run(sql`UPDATE connections SET load_pending = false WHERE shop_id = ${shopId} AND load_pending`);
        yield* tx.run(
          sql`INSERT INTO syncs (shop_id, kind, last_started_at, last_changed, last_ended_at)
            VALUES (${shopId}, ${kind}, ${startedAt ?? null}, ${changed}, ${now})
            ON CONFLICT (shop_id, kind) DO UPDATE SET run = NULL,
              last_started_at = coalesce(excluded.last_started_at, syncs.last_started_at),
              last_changed = excluded.last_changed, last_ended_at = excluded.last_ended_at`,
        );
      });
    },

    unreconciled: (until, now) => unreconciled(db, until, now),

    ...loads(db),
  };
}

/** SQL that joins the syncs of connected shops: `loads` and `changes`. */
export const JOIN_SYNCS = sql`
  LEFT JOIN syncs AS loads ON loads.shop_id = connections.shop_id AND loads.kind = 'full'
  LEFT JOIN syncs AS changes ON changes.shop_id = connections.shop_id AND changes.kind = 'changes'`;

/**
 * Returns SQL of the time up to which a mirror is complete; 0 if unknown. The query must contain JOIN_SYNCS. If a
 * stored time is in the future, the clock was set back, and the time is ignored.
 */
export function coveredUntil(now: number): SQL {
  return sql`CASE WHEN changes.last_started_at <= ${now} THEN changes.last_started_at
    WHEN loads.last_started_at <= ${now} THEN loads.last_started_at ELSE 0 END`;
}

async function unreconciled(db: QuietDatabase, until: number, now: number): Promise<ConnectedShop[]> {
  return db.all<ConnectedShop>(
    sql`SELECT "shopId", "connectedAt" FROM (
        SELECT connections.shop_id AS "shopId", connected_at AS "connectedAt",
          ${coveredUntil(now)} AS covered
        FROM connections ${JOIN_SYNCS}
        WHERE loads.last_ended_at IS NOT NULL) AS shops
      WHERE covered <= ${until} OR ("connectedAt" > covered AND "connectedAt" <= ${now})
      ORDER BY covered, "shopId"`,
  );
}

function loads(
  db: QuietDatabase,
): Pick<SyncStore, "unloaded" | "claimLoad" | "keepLoad" | "releaseLoad" | "loadState"> {
  return {
    async unloaded() {
      return db.all<ConnectedShop>(
        sql`SELECT connections.shop_id AS "shopId", connected_at AS "connectedAt"
          FROM connections LEFT JOIN syncs ON syncs.shop_id = connections.shop_id AND syncs.kind = 'full'
          WHERE load_pending AND last_ended_at IS NULL ORDER BY connections.shop_id`,
      );
    },

    async claimLoad(shopId, { holder, now, until, deadHolder = null }) {
      const claimed = await db.run(
        sql`INSERT INTO syncs (shop_id, kind, holder, held_until) VALUES (${shopId}, 'full', ${holder}, ${until})
          ON CONFLICT (shop_id, kind) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
          WHERE syncs.holder IS NULL OR syncs.holder = ${deadHolder}
            OR syncs.held_until <= ${now} OR syncs.held_until > ${now + LONGEST_CLAIM_MS}`,
      );
      return claimed > 0;
    },

    async keepLoad(shopId, holder, until, progress) {
      const kept = await db.run(
        sql`UPDATE syncs SET held_until = ${until}, progress = ${JSON.stringify(progress)}
          WHERE shop_id = ${shopId} AND kind = 'full' AND holder = ${holder}`,
      );
      return kept > 0;
    },

    async releaseLoad(shopId, holder, progress) {
      await db.run(
        sql`UPDATE syncs SET holder = NULL, held_until = NULL, progress = ${JSON.stringify(progress)}
          WHERE shop_id = ${shopId} AND kind = 'full' AND holder = ${holder}`,
      );
    },

    async loadState(shopId, now) {
      const stored = await db.get<{ holder: string | null; progress: string | null }>(
        sql`SELECT CASE WHEN ${isClaimed(now)} THEN holder END AS holder, progress
          FROM syncs WHERE shop_id = ${shopId} AND kind = 'full'`,
      );
      return stored && { holder: stored.holder, progress: JSON.parse(stored.progress ?? "{}") as LoadProgress };
    },
  };
}
