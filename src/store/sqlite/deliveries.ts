import type { Database } from "bun:sqlite";
import { nextTurn } from "../../lib/waits.ts";
import type { DeliveryQueue, DueShop, EndpointPace } from "../port/deliveries.ts";
import { deliveryClaimer } from "./delivery-claims.ts";
import { resultRecorder } from "./delivery-results.ts";
import { removingShopIds } from "./shop-ids.ts";

/** Rows in one transaction after a clock change, so that nobody waits long for it. */
const ROWS_PER_STEP = 200;

/** Position of a delivery in the plan of its shop. */
type DuePosition = { at: number; number: number };

export function deliveryQueue(db: Database, random: (bytes: number) => Uint8Array): DeliveryQueue {
  const removing = removingShopIds(db);
  const record = resultRecorder(db);
  const claim = deliveryClaimer(db, random);
  const bringSomeForward = forwardBringer(db);
  // One index seek for each shop, however many deliveries are due.
  const nextShop = db.prepare<DueShop & { at: number }, [number]>(
    `SELECT shop_id AS shopId, kind, claimable_at AS at FROM deliveries INDEXED BY deliveries_due
     WHERE claimable_at IS NOT NULL AND shop_id > ? ORDER BY shop_id, claimable_at LIMIT 1`,
  );
  const allPaces = db.prepare<EndpointPace, []>(
    `SELECT shop_id AS shopId, url, pace, timed_out_at AS timedOutAt FROM webhook_endpoints
     WHERE pace IS NOT NULL AND url IS NOT NULL`,
  );

  return {
    async dueShops(now) {
      const shops: DueShop[] = [];
      const removed = removing();
      for (let next = nextShop.get(0); next !== null; next = nextShop.get(next.shopId)) {
        const { shopId, kind, at } = next;
        if (at <= now && !removed.has(shopId)) shops.push({ shopId, kind });
      }
      return shops;
    },

    async listPaces() {
      return allPaces.all();
    },

    async bringForward(latest, now) {
      let brought = 0;
      for (let next = nextShop.get(0); next !== null; next = nextShop.get(next.shopId)) {
        let last: DuePosition | undefined = { at: now, number: Number.MAX_SAFE_INTEGER };
        while (last !== undefined) {
          const step = bringSomeForward(next.shopId, last, latest, now);
          brought += step.brought;
          last = step.last;
          if (last !== undefined) await nextTurn();
        }
      }
      return brought;
    },

    async recordAndClaim(ended, claimsByShop, now, leaseUntil, waits) {
      return db
        .transaction(() => {
          const recorded = ended.filter((each) => record(each, waits));
          const removed = removing();
          const claimed = [...claimsByShop].flatMap(([shopId, count]) =>
            removed.has(shopId) ? [] : claim(shopId, count, now, leaseUntil),
          );
          return { recorded, claimed };
        })
        .immediate();
    },
  };
}

/** @returns a function that makes a step of `bringForward` in its own transaction. `last` is undefined at the end. */
function forwardBringer(db: Database) {
  // New deliveries were queued, or retried by hand, and not claimed since then.
  const plannedAfter = db.prepare<DuePosition & { isNew: number }, DuePosition & { shopId: number }>(
    `SELECT number, claimable_at AS at, status = 'pending' AND lease IS NULL AS isNew
     FROM deliveries INDEXED BY deliveries_due
     WHERE claimable_at IS NOT NULL AND shop_id = +$shopId AND (claimable_at, number) > ($at, $number)
     ORDER BY claimable_at, number LIMIT ${ROWS_PER_STEP}`,
  );
  const makeDue = db.prepare(
    `UPDATE deliveries SET next_attempt_at = min(next_attempt_at, $now), claimable_at = $now
     WHERE shop_id = $shopId AND number = $number`,
  );
  return (shopId: number, after: DuePosition, latest: number, now: number) =>
    db
      .transaction(() => {
        const planned = plannedAfter.all({ shopId, at: after.at, number: after.number });
        const early = planned.filter((each) => each.at > latest || each.isNew === 1);
        for (const { number } of early) makeDue.run({ shopId, number, now });
        return { brought: early.length, last: planned[ROWS_PER_STEP - 1] };
      })
      .immediate();
}
