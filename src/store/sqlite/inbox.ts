import type { Database } from "bun:sqlite";
import { SdsError } from "../../domain/error.ts";
import { nextTurn } from "../../lib/turns.ts";
import {
  type DueItem,
  dueAtOf,
  type InboxEntry,
  type InboxItem,
  type InboxQueue,
  type InboxStore,
  type Receipt,
} from "../port/inbox.ts";
import { removingShopIds, shopCheck, shopIds } from "./shop-ids.ts";

/** Ids that are forgotten in one transaction, so that nobody waits long for it. */
const IDS_PER_STEP = 1_000;
/** Items that are brought forward in one transaction. */
const ITEMS_PER_STEP = 200;

export function inboxStore(db: Database): InboxStore {
  const remember = db.prepare("INSERT OR IGNORE INTO platform_webhooks (shop_id, id, received_at) VALUES (?, ?, ?)");
  const insert = db.prepare(
    `INSERT INTO inbox
       (shop_id, topic, subject, needs_platform, body, triggered_at, received_at, status, next_attempt_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?)`,
  );
  const isServed = shopCheck(db);
  const removing = removingShopIds(db);
  // One index seek for each queue, however many items are due.
  const nextQueue = db.prepare<{ shopId: number; needsPlatform: number; at: number }, [number, number]>(
    `SELECT shop_id AS shopId, needs_platform AS needsPlatform, next_attempt_at AS at FROM inbox INDEXED BY inbox_due
     WHERE next_attempt_at IS NOT NULL AND (shop_id, needs_platform) > (?, ?)
     ORDER BY shop_id, needs_platform, next_attempt_at LIMIT 1`,
  );
  const due = db.prepare<DueItem, [number, boolean, number, number]>(
    `SELECT number, subject FROM inbox INDEXED BY inbox_due
     WHERE shop_id = +? AND needs_platform = +? AND next_attempt_at <= ? ORDER BY next_attempt_at, number LIMIT +?`,
  );
  const bringSomeForward = db.prepare<unknown, { shopId: number; first: number; further: number; now: number }>(
    `UPDATE inbox SET next_attempt_at = $now WHERE shop_id = +$shopId AND number IN (
       SELECT number FROM inbox INDEXED BY inbox_due
       WHERE shop_id = +$shopId AND needs_platform IN (0, 1) AND next_attempt_at > $now
         AND next_attempt_at > iif(attempts = 0, $first, $further) LIMIT ${ITEMS_PER_STEP}
     )`,
  );
  const subjects = db.prepare<{ subject: string }, [number]>(
    "SELECT DISTINCT subject FROM inbox WHERE shop_id = +? AND next_attempt_at IS NOT NULL",
  );
  const item = "number, shop_id AS shopId, topic, subject, body, triggered_at AS triggeredAt, attempts";
  const about = db.prepare<InboxItem, [number, string, boolean, number]>(
    `SELECT ${item} FROM inbox INDEXED BY inbox_of_subject
     WHERE shop_id = +? AND subject = +? AND next_attempt_at IS NOT NULL AND needs_platform = +?
     ORDER BY next_attempt_at, number LIMIT +?`,
  );
  const read = db.prepare<InboxItem, [number, string]>(
    `SELECT ${item} FROM inbox
     WHERE shop_id = +? AND number IN (SELECT value FROM json_each(+?)) ORDER BY number`,
  );
  const postpone = db.prepare(
    `UPDATE inbox SET attempts = attempts + 1, error = ?, status = ?, next_attempt_at = ?
     WHERE shop_id = +? AND number IN (SELECT value FROM json_each(+?))`,
  );
  const retry = db.prepare(
    "UPDATE inbox SET status = 'waiting', attempts = 0, next_attempt_at = ? WHERE shop_id = ? AND number = ?",
  );
  const retryFailed = db.prepare(
    "UPDATE inbox SET status = 'waiting', attempts = 0, next_attempt_at = ? WHERE shop_id = ? AND status = 'failed'",
  );
  const forgetSome = db.prepare<unknown, { shopId: number; before: number }>(
    `DELETE FROM platform_webhooks WHERE shop_id = $shopId AND id IN (
       SELECT id FROM platform_webhooks WHERE shop_id = +$shopId AND received_at < $before LIMIT ${IDS_PER_STEP}
     )`,
  );
  const lastReceipt = db.prepare<{ at: number | null }, [number]>(
    "SELECT max(received_at) AS at FROM platform_webhooks WHERE shop_id = +?",
  );
  const waiting = db.prepare<{ n: number }, [number]>(
    "SELECT count(*) AS n FROM inbox WHERE shop_id = ? AND next_attempt_at IS NOT NULL",
  );
  const failed = db.prepare<{ n: number }, [number]>(
    "SELECT count(*) AS n FROM inbox WHERE shop_id = ? AND status = 'failed'",
  );

  /** The queues with something that waits, and when the first item is due. */
  function queuesWaiting(): (InboxQueue & { at: number })[] {
    const queues: (InboxQueue & { at: number })[] = [];
    for (let next = nextQueue.get(0, 0); next !== null; next = nextQueue.get(next.shopId, next.needsPlatform))
      queues.push({ shopId: next.shopId, needsPlatform: next.needsPlatform === 1, at: next.at });
    return queues;
  }

  function take(receipt: Receipt, now: number): boolean {
    const { shopId, webhookId, topic, subject, needsPlatform, body, triggeredAt } = receipt;
    if (webhookId !== null && remember.run(shopId, webhookId, now).changes === 0) return false;
    insert.run(shopId, topic, subject, needsPlatform, body, triggeredAt, now, dueAtOf(receipt, now));
    return true;
  }

  return {
    async receive(receipts, now) {
      return db
        .transaction(() => {
          // The removal of a shop may have begun since the caller looked it up.
          const shops = new Set([...new Set(receipts.map(({ shopId }) => shopId))].filter(isServed));
          return receipts.map((receipt) => shops.has(receipt.shopId) && take(receipt, now));
        })
        .immediate();
    },

    async dueQueues(now) {
      const removed = removing();
      return queuesWaiting()
        .filter(({ shopId, at }) => at <= now && !removed.has(shopId))
        .map(({ shopId, needsPlatform }) => ({ shopId, needsPlatform }));
    },

    async due({ shopId, needsPlatform }, now, limit) {
      return due.all(shopId, needsPlatform, now, limit);
    },

    async bringForward(latest, now) {
      let brought = 0;
      for (const shopId of new Set(queuesWaiting().map((queue) => queue.shopId))) {
        for (let changes = ITEMS_PER_STEP; changes === ITEMS_PER_STEP; await nextTurn()) {
          changes = bringSomeForward.run({ shopId, ...latest, now }).changes;
          brought += changes;
        }
      }
      return brought;
    },

    async waitingSubjects(shopId) {
      return new Set(subjects.all(shopId).map(({ subject }) => subject));
    },

    async waitingAbout({ shopId, needsPlatform }, subject, limit) {
      return about.all(shopId, subject, needsPlatform, limit).toSorted((a, b) => a.number - b.number);
    },

    async read(shopId, numbers) {
      return read.all(shopId, JSON.stringify(numbers));
    },

    async postpone(shopId, numbers, error, nextAttemptAt) {
      postpone.run(
        error,
        nextAttemptAt === null ? "failed" : "waiting",
        nextAttemptAt,
        shopId,
        JSON.stringify(numbers),
      );
    },

    async list(shopId, { limit, status }) {
      const ofStatus = status === undefined ? "" : `AND status = '${status}'`;
      return db
        .query<InboxEntry, { shopId: number; limit: number }>(
          `SELECT number, topic, subject, status, attempts, error,
             received_at AS receivedAt, max(next_attempt_at, received_at) AS nextAttemptAt
           FROM inbox WHERE shop_id = $shopId ${ofStatus} ORDER BY number DESC LIMIT $limit`,
        )
        .all({ shopId, limit });
    },

    async count(shopId) {
      return { waiting: waiting.get(shopId)?.n ?? 0, failed: failed.get(shopId)?.n ?? 0 };
    },

    async lastReceivedAt(shopId) {
      return lastReceipt.get(shopId)?.at ?? null;
    },

    async retry(shopId, number, now) {
      if (retry.run(now, shopId, number).changes === 0)
        throw new SdsError("not_found", `there is no platform webhook with the id ${number} in the inbox`);
    },

    async retryFailed(shopId, now) {
      return retryFailed.run(now, shopId).changes;
    },

    async forgetReceipts(before) {
      for (const shopId of shopIds(db)) {
        while (forgetSome.run({ shopId, before }).changes > 0) await nextTurn();
      }
    },
  };
}
