import { SdsError } from "../../domain/error.ts";
import type { DueItem, InboxEntry, InboxItem, InboxQueue, InboxStore } from "../port/inbox.ts";
import type { Database } from "./database.ts";
import { receiveWebhooks } from "./inbox-receipts.ts";
import { shopIds } from "./shop-ids.ts";

/** Ids that are forgotten in one transaction, so that nobody waits long for it. */
const IDS_PER_STEP = 1_000;
/** Items that are brought forward in one transaction. */
const ITEMS_PER_STEP = 200;

/** The first waiting item of each queue: one index seek for each, however many wait. */
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

/** The columns of an `InboxItem`. */
const ITEM = `number::float8 AS number, shop_id::float8 AS "shopId", topic, subject, body,
  triggered_at::float8 AS "triggeredAt", attempts::float8 AS attempts`;

export function inboxStore(db: Database): InboxStore {
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

    async waitingSubjects(shopId) {
      const found = await db.all<{ subject: string }>(
        "SELECT DISTINCT subject FROM inbox WHERE shop_id = $1::bigint AND next_attempt_at IS NOT NULL",
        [shopId],
      );
      return new Set(found.map(({ subject }) => subject));
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

    async read(shopId, numbers) {
      return db.all<InboxItem>(
        `SELECT ${ITEM} FROM inbox WHERE shop_id = $1::bigint AND number = ANY($2::bigint[]) ORDER BY inbox.number`,
        [shopId, numbers],
      );
    },

    async postpone(shopId, numbers, error, nextAttemptAt) {
      await db.run(
        `UPDATE inbox SET attempts = attempts + 1, error = $3::text, status = $4::text, next_attempt_at = $5::bigint
         WHERE shop_id = $1::bigint AND number = ANY($2::bigint[])`,
        [shopId, numbers, error, nextAttemptAt === null ? "failed" : "waiting", nextAttemptAt],
      );
    },

    async list(shopId, { limit, status }) {
      // The condition is part of the text, because a partial index is used only then.
      const ofStatus = status === undefined ? "" : `AND status = '${status}'`;
      return db.all<InboxEntry>(
        `SELECT number::float8 AS number, topic, subject, status, attempts::float8 AS attempts, error,
           received_at::float8 AS "receivedAt",
           (CASE WHEN next_attempt_at IS NOT NULL THEN greatest(next_attempt_at, received_at) END)::float8
             AS "nextAttemptAt"
         FROM inbox WHERE shop_id = $1::bigint ${ofStatus} ORDER BY inbox.number DESC LIMIT $2::bigint`,
        [shopId, limit],
      );
    },

    async count(shopId) {
      const found = await db.get<{ waiting: number; failed: number }>(
        `SELECT
           (SELECT count(*) FROM inbox WHERE shop_id = $1::bigint AND next_attempt_at IS NOT NULL)::float8 AS waiting,
           (SELECT count(*) FROM inbox WHERE shop_id = $1::bigint AND status = 'failed')::float8 AS failed`,
        [shopId],
      );
      return found ?? { waiting: 0, failed: 0 };
    },

    async lastReceivedAt(shopId) {
      const found = await db.get<{ at: number | null }>(
        "SELECT max(received_at)::float8 AS at FROM platform_webhooks WHERE shop_id = $1::bigint",
        [shopId],
      );
      return found?.at ?? null;
    },

    async retry(shopId, number, now) {
      const retried = await db.run(
        `UPDATE inbox SET status = 'waiting', attempts = 0, next_attempt_at = $3::bigint
         WHERE shop_id = $1::bigint AND number = $2::bigint`,
        [shopId, number, now],
      );
      if (retried === 0)
        throw new SdsError("not_found", `there is no platform webhook with the id ${number} in the inbox`);
    },

    async retryFailed(shopId, now) {
      return db.run(
        `UPDATE inbox SET status = 'waiting', attempts = 0, next_attempt_at = $2::bigint
         WHERE shop_id = $1::bigint AND status = 'failed'`,
        [shopId, now],
      );
    },

    async forgetReceipts(before) {
      for (const shopId of await shopIds(db)) while ((await forgetSome(db, shopId, before)) > 0);
    },
  };
}

/** @returns how many items it made due */
function bringSomeForward(
  db: Database,
  shopId: number,
  latest: { first: number; further: number },
  now: number,
): Promise<number> {
  const isTooLate = `next_attempt_at > $2::bigint
    AND next_attempt_at > CASE WHEN attempts = 0 THEN $3::bigint ELSE $4::bigint END`;
  // The update looks again at what another process may have changed since the statement began.
  return db.run(
    `UPDATE inbox SET next_attempt_at = $2::bigint WHERE shop_id = $1::bigint AND ${isTooLate}
       AND number = ANY(ARRAY(
         SELECT number FROM inbox WHERE shop_id = $1::bigint AND needs_platform IN (false, true) AND ${isTooLate}
         LIMIT ${ITEMS_PER_STEP}
       ))`,
    [shopId, now, latest.first, latest.further],
  );
}

/** @returns how many ids it forgot */
function forgetSome(db: Database, shopId: number, before: number): Promise<number> {
  return db.run(
    `DELETE FROM platform_webhooks WHERE shop_id = $1::bigint AND id = ANY(ARRAY(
       SELECT id FROM platform_webhooks WHERE shop_id = $1::bigint AND received_at < $2::bigint LIMIT ${IDS_PER_STEP}
     ))`,
    [shopId, before],
  );
}
