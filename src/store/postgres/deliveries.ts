import type { DeliveryKind } from "../../domain/deliveries/delivery.ts";
import { randomId } from "../../domain/ids.ts";
import type { DeliveryQueue, EndpointPace } from "../port/deliveries.ts";
import { keepAlerts } from "./alert-keeper.ts";
import { type Database, pipeline } from "./database.ts";
import { claimDeliveries, lockQueues } from "./delivery-claims.ts";
import { keepPaces, recordResults } from "./delivery-results.ts";
import { dueSearch } from "./due-search.ts";

/** Maximum number of rows per transaction of `bringForward`. A low number keeps waits of other transactions short. */
const ROWS_PER_STEP = 200;

export function deliveryQueue(db: Database, random: (bytes: number) => Uint8Array): DeliveryQueue {
  const due = dueSearch<DeliveryKind>(db, { table: "deliveries", queue: "kind", dueAt: "claimable_at" });
  return {
    async dueQueues(now) {
      return (await due.find(now)).map(({ shopId, queue }) => ({ shopId, kind: queue }));
    },

    async listPaces() {
      return db.all<EndpointPace>(
        `SELECT shop_id::float8 AS "shopId", url, pace, timed_out_at::float8 AS "timedOutAt" FROM webhook_endpoints
         WHERE pace IS NOT NULL AND url IS NOT NULL`,
      );
    },

    async bringForward(latest, now) {
      let brought = 0;
      for (let step = ROWS_PER_STEP; step === ROWS_PER_STEP; brought += step) {
        step = await bringSomeForward(db, latest, now);
      }
      return brought;
    },

    async recordAndClaim(ended, claims, now, leaseUntil, waits) {
      const asked = claims.map((each) => ({
        ...each,
        lease: randomId("", random),
        since: due.since(each.shopId, each.kind),
      }));
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

/** Runs one step of `DeliveryQueue.bringForward`. @returns the number of deliveries that it made due now */
function bringSomeForward(db: Database, latest: number, now: number): Promise<number> {
  // A `pending` delivery without a lease was not claimed since it was queued or retried by hand. The UPDATE checks
  // again, because another process may have changed the delivery since the statement began.
  const isTooLate = (table: string) => `${table}.claimable_at > $2::bigint
    AND (${table}.claimable_at > $1::bigint OR (${table}.status = 'pending' AND ${table}.lease IS NULL))`;
  return db.run(
    `UPDATE deliveries SET next_attempt_at = least(deliveries.next_attempt_at, $2::bigint), claimable_at = $2::bigint
     FROM (
       SELECT shop_id, number FROM deliveries AS planned WHERE ${isTooLate("planned")}
       ORDER BY claimable_at DESC LIMIT ${ROWS_PER_STEP}
     ) AS late
     WHERE deliveries.shop_id = late.shop_id AND deliveries.number = late.number AND ${isTooLate("deliveries")}`,
    [latest, now],
  );
}
