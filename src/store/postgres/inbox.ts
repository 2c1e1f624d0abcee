import type { DueItem, InboxItem, InboxQueue, InboxQueues } from "../port/inbox.ts";
import type { Database } from "./database.ts";
import { receiveWebhooks } from "./inbox-receipts.ts";

/** Items in one transaction of `bringForward`: few, so that other transactions wait only briefly. */
const ITEMS_PER_STEP = 200;

/** Selects the first waiting item of each queue, by one index seek for each queue. */
const FIRST_WAITING = `WITH RECURSIVE waiting AS (
  (
    SELECT shop_id, needs_platform, next_attempt_at FROM inbox WHERE shop_id > 0 AND next_attempt_at IS NOT NULL
    ORDER BY shop_id, needs_platform, next_attempt_at LIMIT 1
  )
  UNION ALL
  SELECT next.shop_id, next.needs_platform, next.next_attempt_at FROM waiting CROSS JOIN LATERAL (
    SELECT shop_id, needs_platform, next_attempt_at FROM inbox
    WHERE (shop_id, needs_platform) > (waiting.shop_id, waiting.needs_platform) AND next_attempt_at IS NOT NULL
    ORDER BY shop_id, needs_platform, next_attempt_at LIMIT 1
  ) AS next
) SELECT * FROM waiting`;

/** Selects the columns of an `InboxItem`. */
const ITEM = `number::float8 AS number, shop_id::float8 AS "shopId", topic, subject, body,
  triggered_at::float8 AS "triggeredAt", attempts::float8 AS attempts, error`;

export function inboxQueues(db: Database): InboxQueues {
  return {
    receive: (receipts, now) => receiveWebhooks(db, receipts, now),

    async dueQueues(now) {
      return db.all<InboxQueue>(
        `SELECT shop_id::float8 AS "shopId", needs_platform AS "needsPlatform" FROM (${FIRST_WAITING}) AS first_waiting
         JOIN shops ON shops.id = shop_id
         WHERE next_attempt_at <= $1::bigint AND removal_started_at IS NULL ORDER BY shop_id, needs_platform`,
        [now],
      );
    },

    async due({ shopId, needsPlatform }, now, limit) {
      return db.all<DueItem>(
        `SELECT number::float8 AS number, subject FROM inbox
         WHERE shop_id = $1::bigint AND needs_platform = $2::boolean AND next_attempt_at <= $3::bigint
         ORDER BY next_attempt_at, inbox.number LIMIT $4::bigint`,
        [shopId, needsPlatform, now, limit],
      );
    },

    async bringForward(latest, now) {
      let brought = 0;
      const shops = await db.all<{ id: number }>(
        `SELECT DISTINCT shop_id::float8 AS id FROM (${FIRST_WAITING}) AS first_waiting`,
      );
      for (const { id } of shops) {
        for (let changes = ITEMS_PER_STEP; changes === ITEMS_PER_STEP; ) {
          changes = await bringSomeForward(db, id, latest, now);
          brought += changes;
        }
      }
      return brought;
    },

    async waitingAbout({ shopId, needsPlatform }, subject, limit) {
      const items = await db.all<InboxItem>(
        `SELECT ${ITEM} FROM inbox
         WHERE shop_id = $1::bigint AND subject = $2::text AND next_attempt_at IS NOT NULL
           AND needs_platform = $3::boolean
         ORDER BY next_attempt_at, inbox.number LIMIT $4::bigint`,
        [shopId, subject, needsPlatform, limit],
      );
      return items.sort((a, b) => a.number - b.number);
    },
  };
}

/** Makes some of a shop's items due. @returns how many */
function bringSomeForward(
  db: Database,
  shopId: number,
  latest: { first: number; further: number },
  now: number,
): Promise<number> {
  const isTooLate = `next_attempt_at > $2::bigint
    AND next_attempt_at > CASE WHEN attempts = 0 THEN $3::bigint ELSE $4::bigint END`;
  // The UPDATE checks again, because another process may have changed the item since the statement began.
  return db.run(
    `UPDATE inbox SET next_attempt_at = $2::bigint WHERE shop_id = $1::bigint AND ${isTooLate}
       AND number = ANY(ARRAY(
         SELECT number FROM inbox WHERE shop_id = $1::bigint AND needs_platform IN (false, true) AND ${isTooLate}
         LIMIT ${ITEMS_PER_STEP}
       ))`,
    [shopId, now, latest.first, latest.further],
  );
}
