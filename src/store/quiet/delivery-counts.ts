import type { DeliveryKind } from "../../domain/deliveries/delivery.ts";
import { startOfDay } from "../../lib/time.ts";
import type { AttemptFigures, DayCount, DeliveryCounts } from "../port/deliveries.ts";
import { KINDS } from "./delivery-search.ts";
import { type QuietDatabase, sql } from "./quiet-database.ts";

/** Maximum number of deliveries that `recentAttempts` reads, newest first. This takes some milliseconds. */
const RECENT = 1_000;

interface TimedAttempt {
  duration: number;
  succeeded: boolean | 0 | 1;
}

/** Makes the queries for the figures of the log. The transaction that records an attempt also counts the attempt. */
export function deliveryCounts(db: QuietDatabase): DeliveryCounts {
  return {
    countsByDay: (shopId, since) =>
      db.all<DayCount>(
        sql`SELECT kind, day, outcome, attempts FROM delivery_counts
          WHERE shop_id = ${shopId} AND kind IN ('webhook', 'trigger') AND day >= ${startOfDay(since)}
          ORDER BY kind, day, outcome`,
      ),

    async lastOutcomes(shopId, kind) {
      const [succeededAt, failedAt] = [await lastAt(db, shopId, kind, true), await lastAt(db, shopId, kind, false)];
      return { succeededAt, failedAt };
    },

    async recentAttempts(shopId, kind, since) {
      const ofKind = sql`deliveries.shop_id = ${shopId} AND kind = ${KINDS[kind]}`;
      const beyond = await db.get<{ number: number; createdAt: number }>(
        sql`SELECT number, created_at AS "createdAt" FROM deliveries WHERE ${ofKind}
          ORDER BY number DESC LIMIT 1 OFFSET ${RECENT}`,
      );
      const first = beyond?.number ?? 0;
      const attempts = await db.all<TimedAttempt>(
        sql`SELECT duration, attempts.error IS NULL AS succeeded
          FROM deliveries JOIN attempts ON attempts.shop_id = deliveries.shop_id AND delivery = deliveries.number
          WHERE ${ofKind} AND deliveries.number > ${first} AND delivery > ${first} AND started_at >= ${since}`,
      );
      return { ...figuresOf(attempts), isPart: beyond !== undefined && beyond.createdAt >= since };
    },

    async countDelivered(shopId, since, limit) {
      const counted = await db.get<{ n: number }>(
        sql`SELECT count(*) AS n FROM (
            SELECT 1 AS one FROM deliveries WHERE status = 'delivered' AND shop_id = ${shopId} AND ended_at >= ${since}
            LIMIT ${limit}
          ) AS delivered`,
      );
      return counted?.n ?? 0;
    },
  };
}

/** Returns the start of the last successful or the last failed attempt; null without such an attempt. */
async function lastAt(
  db: QuietDatabase,
  shopId: number,
  kind: DeliveryKind,
  succeeded: boolean,
): Promise<number | null> {
  const outcome = succeeded ? sql`outcome = 'delivered'` : sql`outcome <> 'delivered'`;
  const last = await db.get<{ at: number | null }>(
    sql`SELECT max(last_at) AS at FROM delivery_counts
      WHERE shop_id = ${shopId} AND kind = ${KINDS[kind]} AND ${outcome}`,
  );
  return last?.at ?? null;
}

function figuresOf(attempts: readonly TimedAttempt[]): Omit<AttemptFigures, "isPart"> {
  const durations = attempts.map(({ duration }) => duration).sort((a, b) => a - b);
  const percentile = (share: number) => durations[Math.ceil(share * durations.length) - 1] ?? null;
  return {
    attempts: attempts.length,
    succeeded: attempts.filter(({ succeeded }) => Boolean(succeeded)).length,
    medianMs: percentile(0.5),
    percentile95Ms: percentile(0.95),
  };
}
