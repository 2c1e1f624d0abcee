import type { Database } from "bun:sqlite";
import { afterAttempt } from "../../domain/deliveries/delivery.ts";
import type { NewestSecret } from "../../domain/deliveries/signing-secret.ts";
import { randomId } from "../../domain/ids.ts";
import { nextTurn } from "../../lib/turns.ts";
import {
  type AttemptResult,
  type Claim,
  changeableBody,
  type DeliveryStore,
  type DueShop,
  type EndpointPace,
} from "../port/deliveries.ts";
import { deliveryLog } from "./delivery-log.ts";
import { removingShopIds } from "./shop-ids.ts";

/** Deliveries that one transaction looks at after a clock change, so that nobody waits long for it. */
const ROWS_PER_STEP = 200;

/** The place of a delivery in the order in which a shop's deliveries are planned. */
type Place = { at: number; number: number };

/** A claim without what is the same for all claims of a shop. */
type ClaimedRow = Omit<Claim, "url" | "domain" | "newestSecret" | "test"> & { test: number };

export function deliveryStore(db: Database, random: (bytes: number) => Uint8Array): DeliveryStore {
  const removing = removingShopIds(db);
  // One index seek for each shop, however many deliveries are due.
  const nextShop = db.prepare<DueShop & { at: number }, [number]>(
    `SELECT shop_id AS shopId, kind, claimable_at AS at FROM deliveries INDEXED BY deliveries_due
     WHERE claimable_at IS NOT NULL AND shop_id > ? ORDER BY shop_id, claimable_at LIMIT 1`,
  );
  const claim = db.prepare<ClaimedRow, [string, number, number, number, number]>(
    `UPDATE deliveries SET lease = ?, claimable_at = ? WHERE number IN (
       SELECT number FROM (
         SELECT number, kind, first_value(kind) OVER (ORDER BY claimable_at, number) AS firstKind
         FROM deliveries INDEXED BY deliveries_due
         WHERE shop_id = +? AND claimable_at <= ? ORDER BY claimable_at, number LIMIT +?
       ) WHERE kind = firstKind
     ) RETURNING id, number, kind, shop_id AS shopId, body, topic, test, secret_version AS secretVersion, attempts,
       round, lease`,
  );
  const endpointOf = db.prepare<{ domain: string; url: string | null } & NewestSecret, [number]>(
    `SELECT domain, url, version, overlap_ends_at AS overlapEndsAt FROM shops
     LEFT JOIN webhook_endpoints ON webhook_endpoints.shop_id = shops.id
     LEFT JOIN webhook_secrets ON webhook_secrets.shop_id = shops.id
       AND version = (SELECT max(version) FROM webhook_secrets WHERE shop_id = shops.id)
     WHERE shops.id = +?`,
  );
  // What is new was queued, or retried by hand, and not claimed since then.
  const plannedAfter = db.prepare<Place & { isNew: number }, Place & { shopId: number }>(
    `SELECT number, claimable_at AS at, status = 'pending' AND lease IS NULL AS isNew
     FROM deliveries INDEXED BY deliveries_due
     WHERE claimable_at IS NOT NULL AND shop_id = +$shopId AND (claimable_at, number) > ($at, $number)
     ORDER BY claimable_at, number LIMIT ${ROWS_PER_STEP}`,
  );
  const makeDue = db.prepare(
    `UPDATE deliveries SET next_attempt_at = min(next_attempt_at, $now), claimable_at = $now
     WHERE shop_id = $shopId AND number = $number`,
  );
  const setPace = db.prepare(
    `UPDATE webhook_endpoints SET pace = $pace, timed_out_at = coalesce($timedOutAt, timed_out_at)
     WHERE shop_id = $shopId AND url = $url AND (pace IS NOT $pace OR $timedOutAt IS NOT NULL)`,
  );
  const allPaces = db.prepare<EndpointPace, []>(
    `SELECT shop_id AS shopId, url, pace, timed_out_at AS timedOutAt FROM webhook_endpoints
     WHERE pace IS NOT NULL AND url IS NOT NULL`,
  );
  const update = db.prepare(
    `UPDATE deliveries SET status = ?, attempts = ?, round = ?, next_attempt_at = ?, claimable_at = ?, lease = NULL,
       last_status_code = ?, error = ?, ended_at = ? WHERE shop_id = ? AND number = ? AND lease = ?`,
  );
  const addAttempt = db.prepare(
    `INSERT INTO attempts (shop_id, delivery, number, started_at, duration, status_code, error, url, answer)
     SELECT shop_id, number, attempts, $startedAt, $duration, last_status_code, error, $url,
       iif($sentBody IS NULL OR body = $sentBody, $answer, NULL)
     FROM deliveries WHERE shop_id = +$shopId AND number = +$number`,
  );
  /** @returns false if another process took over the lease */
  function record(result: AttemptResult, waits: readonly number[]): boolean {
    const { claim, outcome, startedAt, duration, pace } = result;
    const { shopId, number, lease } = claim;
    // Under its lease nothing else changes a delivery, so it is as it was claimed.
    const { status, attempts, round, nextAttemptAt } = afterAttempt(claim, outcome, startedAt, waits);
    const { statusCode, error, url = null, answer = null } = outcome;
    const endedAt = nextAttemptAt === null ? startedAt + duration : null;
    const after = [status, attempts, round, nextAttemptAt, nextAttemptAt, statusCode, error, endedAt];
    if (update.run(...after, shopId, number, lease).changes === 0) return false;
    addAttempt.run({ startedAt, duration, url, sentBody: changeableBody(result), answer, shopId, number });
    if (pace !== undefined) setPace.run({ ...pace, shopId, url: claim.url });
    return true;
  }

  function claimFor(shopId: number, share: number, now: number, leaseUntil: number): Claim[] {
    const endpoint = endpointOf.get(shopId);
    if (endpoint === null) return [];
    const { domain, url, version, overlapEndsAt } = endpoint;
    const newestSecret = { version, overlapEndsAt };
    return claim
      .all(randomId("", random), leaseUntil, shopId, now, share)
      .map((claimed) => ({ ...claimed, test: claimed.test === 1, domain, url, newestSecret }));
  }

  return {
    ...deliveryLog(db, random),

    async dueShops(now) {
      const shops: DueShop[] = [];
      const removed = removing();
      for (let next = nextShop.get(0); next !== null; next = nextShop.get(next.shopId)) {
        const { shopId, kind, at } = next;
        if (at <= now && !removed.has(shopId)) shops.push({ shopId, kind });
      }
      return shops;
    },

    async paces() {
      return allPaces.all();
    },

    async bringForward(latest, now) {
      let brought = 0;
      for (let next = nextShop.get(0); next !== null; next = nextShop.get(next.shopId)) {
        const { shopId } = next;
        let last: Place | undefined = { at: now, number: Number.MAX_SAFE_INTEGER };
        while (last !== undefined) {
          const { at, number } = last;
          const { planned, early } = db
            .transaction(() => {
              const planned = plannedAfter.all({ shopId, at, number });
              const early = planned.filter((each) => each.at > latest || each.isNew === 1);
              for (const each of early) makeDue.run({ shopId, number: each.number, now });
              return { planned, early };
            })
            .immediate();
          brought += early.length;
          last = planned[ROWS_PER_STEP - 1];
          if (last !== undefined) await nextTurn();
        }
      }
      return brought;
    },

    async turn(ended, shares, now, leaseUntil, waits) {
      return db
        .transaction(() => {
          const recorded = ended.filter((each) => record(each, waits));
          const removed = removing();
          const claimed = [...shares].flatMap(([shopId, share]) =>
            removed.has(shopId) ? [] : claimFor(shopId, share, now, leaseUntil),
          );
          return { recorded, claimed };
        })
        .immediate();
    },
  };
}
