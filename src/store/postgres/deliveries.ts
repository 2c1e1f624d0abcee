import { randomId } from "../../domain/ids.ts";
import type { DeliveryQueue, EndpointPace, SendQueue } from "../port/deliveries.ts";
import { keepAlerts } from "./alert-keeper.ts";
import { type Database, pipeline } from "./database.ts";
import { claimDeliveries, lockQueues } from "./delivery-claims.ts";
import { keepPaces, recordResults } from "./delivery-results.ts";

/** Rows in one transaction of `bringForward`: few, so that other transactions wait only briefly. */
const ROWS_PER_STEP = 200;

/** Selects the first planned delivery of each queue, by one index seek for each queue. */
const FIRST_PLANNED = `WITH RECURSIVE planned AS (
  (
    SELECT shop_id, kind, claimable_at FROM deliveries WHERE shop_id > 0 AND claimable_at IS NOT NULL
    ORDER BY shop_id, kind, claimable_at, number LIMIT 1
  )
  UNION ALL
  SELECT next.shop_id, next.kind, next.claimable_at FROM planned CROSS JOIN LATERAL (
    SELECT shop_id, kind, claimable_at FROM deliveries
    WHERE (shop_id, kind) > (planned.shop_id, planned.kind) AND claimable_at IS NOT NULL
    ORDER BY shop_id, kind, claimable_at, number LIMIT 1
  ) AS next
) SELECT * FROM planned`;

/** Position of a delivery in its shop's plan. */
interface DuePosition {
  at: number;
  number: number;
}

/** Result of a step of `bringForward`, with the position of the step's last delivery. */
interface Step extends DuePosition {
  planned: number;
  brought: number;
}

export function deliveryQueue(db: Database, random: (bytes: number) => Uint8Array): DeliveryQueue {
  return {
    async dueQueues(now) {
      return db.all<SendQueue>(
        `SELECT shop_id::float8 AS "shopId", kind FROM (${FIRST_PLANNED}) AS first_planned
         JOIN shops ON shops.id = shop_id
         WHERE claimable_at <= $1::bigint AND removal_started_at IS NULL ORDER BY shop_id, kind`,
        [now],
      );
    },

    async listPaces() {
      return db.all<EndpointPace>(
        `SELECT shop_id::float8 AS "shopId", url, pace, timed_out_at::float8 AS "timedOutAt" FROM webhook_endpoints
         WHERE pace IS NOT NULL AND url IS NOT NULL`,
      );
    },

    async bringForward(latest, now) {
      let brought = 0;
      const queues = await db.all<SendQueue>(
        `SELECT shop_id::float8 AS "shopId", kind FROM (${FIRST_PLANNED}) AS planned`,
      );
      for (const queue of queues) {
        let last: DuePosition | undefined = { at: now, number: Number.MAX_SAFE_INTEGER };
        while (last !== undefined) {
          const step: Step | undefined = await bringSomeForward(db, queue, last, latest, now);
          brought += step?.brought ?? 0;
          last = step?.planned === ROWS_PER_STEP ? step : undefined;
        }
      }
      return brought;
    },

    async recordAndClaim(ended, claims, now, leaseUntil, waits) {
      const asked = claims.map((each) => ({ ...each, lease: randomId("", random) }));
      return db.transaction(async (tx) => {
        const [domains, recorded] = await pipeline([
          lockQueues(tx, [...new Set(asked.map(({ shopId }) => shopId))]),
          recordResults(tx, ended, waits),
        ]);
        const [claimed] = await pipeline([
          claimDeliveries(tx, domains, asked, now, leaseUntil),
          keepPaces(tx, recorded),
          keepAlerts(tx, recorded, waits),
        ]);
        return { recorded, claimed };
      });
    },
  };
}

/** Reads the next planned deliveries of a queue. Makes due now those that `DeliveryQueue.bringForward` describes. */
function bringSomeForward(
  db: Database,
  { shopId, kind }: SendQueue,
  { at, number }: DuePosition,
  latest: number,
  now: number,
): Promise<Step | undefined> {
  // `pending` without a lease: no process has claimed the delivery since it was queued, or retried by hand. The UPDATE
  // checks again, because another process may have changed the delivery since the statement began.
  return db.get<Step>(
    `WITH planned AS (
       SELECT number, claimable_at FROM deliveries
       WHERE shop_id = $1::bigint AND kind = $6 AND claimable_at IS NOT NULL
         AND (claimable_at, number) > ($2::bigint, $3::bigint)
       ORDER BY claimable_at, number LIMIT ${ROWS_PER_STEP}
     ), brought AS (
       UPDATE deliveries SET next_attempt_at = least(next_attempt_at, $5::bigint), claimable_at = $5::bigint
       WHERE shop_id = $1::bigint AND number = ANY(ARRAY(SELECT number FROM planned)) AND claimable_at > $5::bigint
         AND (claimable_at > $4::bigint OR (status = 'pending' AND lease IS NULL))
       RETURNING number
     )
     SELECT planned.claimable_at::float8 AS at, planned.number::float8 AS number,
       (SELECT count(*) FROM planned)::float8 AS planned, (SELECT count(*) FROM brought)::float8 AS brought
     FROM planned ORDER BY planned.claimable_at DESC, planned.number DESC LIMIT 1`,
    [shopId, at, number, latest, now, kind],
  );
}
