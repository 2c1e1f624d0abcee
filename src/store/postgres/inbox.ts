import type { DueItem, InboxItem, InboxQueues } from "../port/inbox.ts";
import type { Database } from "./database.ts";
import { dueSearch } from "./due-search.ts";
import { receiveWebhooks } from "./inbox-receipts.ts";

/** Maximum number of items per transaction of `bringForward`. A low number keeps waits of other transactions short. */
const ITEMS_PER_STEP = 200;

/** Selects the columns of an `InboxItem`. */
const ITEM = `number::float8 AS number, shop_id::float8 AS "shopId", topic, subject, body,
  triggered_at::float8 AS "triggeredAt", attempts::float8 AS attempts, error`;

export function inboxQueues(db: Database): InboxQueues {
  const search = dueSearch<boolean>(db, { table: "inbox", queue: "needs_platform", dueAt: "next_attempt_at" });
  return {
    receive: (receipts, now) => receiveWebhooks(db, receipts, now),

    async dueQueues(now) {
      return (await search.find(now)).map(({ shopId, queue }) => ({ shopId, needsPlatform: queue }));
    },

    async due({ shopId, needsPlatform }, now, limit) {
      return db.all<DueItem>(
        `SELECT number::float8 AS number, subject FROM inbox
         WHERE shop_id = $1::bigint AND needs_platform = $2::boolean
           AND next_attempt_at BETWEEN $5::bigint AND $3::bigint
         ORDER BY next_attempt_at, inbox.number LIMIT $4::bigint`,
        [shopId, needsPlatform, now, limit, search.since(shopId, needsPlatform)],
      );
    },

    async bringForward(latest, now) {
      let brought = 0;
      for (let step = ITEMS_PER_STEP; step === ITEMS_PER_STEP; brought += step) {
        step = await bringSomeForward(db, latest, now);
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

/** Runs one step of `bringForward`. @returns the number of items that it made due now */
function bringSomeForward(db: Database, latest: { first: number; further: number }, now: number): Promise<number> {
  const isTooLate = (table: string) => `${table}.next_attempt_at > $1::bigint
    AND ${table}.next_attempt_at > CASE WHEN ${table}.attempts = 0 THEN $2::bigint ELSE $3::bigint END`;
  // The UPDATE checks again, because another process may have changed the item since the statement began.
  return db.run(
    `UPDATE inbox SET next_attempt_at = $1::bigint
     FROM (
       SELECT shop_id, number FROM inbox AS planned WHERE ${isTooLate("planned")}
       ORDER BY next_attempt_at DESC LIMIT ${ITEMS_PER_STEP}
     ) AS late
     WHERE inbox.shop_id = late.shop_id AND inbox.number = late.number AND ${isTooLate("inbox")}`,
    [now, latest.first, latest.further],
  );
}
