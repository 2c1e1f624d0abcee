import type { Database } from "bun:sqlite";
import { nextTurn } from "../../lib/waits.ts";
import {
  type DueItem,
  dueAtOf,
  type InboxItem,
  type InboxQueue,
  type InboxQueues,
  type Receipt,
} from "../port/inbox.ts";

/** Maximum number of items per transaction of `bringForward`. A low number keeps waits of other operations short. */
const ITEMS_PER_STEP = 200;

export function inboxQueues(db: Database): InboxQueues {
  const receive = webhookReceiver(db);
  const removing = db.prepare<{ id: number }, []>("SELECT id FROM shops WHERE removal_started_at IS NOT NULL");
  const waitingQueues = queueFinder(db);
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
  const about = db.prepare<InboxItem, [number, string, boolean, number]>(
    `SELECT number, shop_id AS shopId, topic, subject, body, triggered_at AS triggeredAt, attempts, error
     FROM inbox INDEXED BY inbox_of_subject
     WHERE shop_id = +? AND subject = +? AND next_attempt_at IS NOT NULL AND needs_platform = +?
     ORDER BY next_attempt_at, number LIMIT +?`,
  );

  return {
    async receive(receipts, now) {
      return receive(receipts, now);
    },

    async dueQueues(now) {
      const removed = new Set(removing.all().map(({ id }) => id));
      return waitingQueues()
        .filter(({ shopId, at }) => at <= now && !removed.has(shopId))
        .map(({ shopId, needsPlatform }) => ({ shopId, needsPlatform }));
    },

    async due({ shopId, needsPlatform }, now, limit) {
      return due.all(shopId, needsPlatform, now, limit);
    },

    async bringForward(latest, now) {
      let brought = 0;
      for (const shopId of new Set(waitingQueues().map((queue) => queue.shopId))) {
        for (let changes = ITEMS_PER_STEP; changes === ITEMS_PER_STEP; await nextTurn()) {
          changes = bringSomeForward.run({ shopId, ...latest, now }).changes;
          brought += changes;
        }
      }
      return brought;
    },

    async waitingAbout({ shopId, needsPlatform }, subject, limit) {
      return about.all(shopId, subject, needsPlatform, limit).toSorted((a, b) => a.number - b.number);
    },
  };
}

/** @returns a function that finds the queues with waiting items, and the due time of each queue's first item */
function queueFinder(db: Database): () => (InboxQueue & { at: number })[] {
  // Finds the next queue with one index seek, whatever the number of due items.
  const nextQueue = db.prepare<{ shopId: number; needsPlatform: number; at: number }, [number, number]>(
    `SELECT shop_id AS shopId, needs_platform AS needsPlatform, next_attempt_at AS at FROM inbox INDEXED BY inbox_due
     WHERE next_attempt_at IS NOT NULL AND (shop_id, needs_platform) > (?, ?)
     ORDER BY shop_id, needs_platform, next_attempt_at LIMIT 1`,
  );
  return () => {
    const queues: (InboxQueue & { at: number })[] = [];
    for (let next = nextQueue.get(0, 0); next !== null; next = nextQueue.get(next.shopId, next.needsPlatform))
      queues.push({ shopId: next.shopId, needsPlatform: next.needsPlatform === 1, at: next.at });
    return queues;
  };
}

/** @returns a function that stores new webhooks in one transaction. It returns for each webhook whether it is new. */
function webhookReceiver(db: Database): (receipts: readonly Receipt[], now: number) => boolean[] {
  const remember = db.prepare("INSERT OR IGNORE INTO platform_webhooks (shop_id, id, received_at) VALUES (?, ?, ?)");
  const insert = db.prepare(
    `INSERT INTO inbox
       (shop_id, topic, subject, needs_platform, body, triggered_at, received_at, status, next_attempt_at, error)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?, ?)`,
  );
  const isServed = db.prepare<unknown, [number]>("SELECT 1 FROM shops WHERE id = ? AND removal_started_at IS NULL");

  function receive(receipt: Receipt, now: number): boolean {
    const { shopId, webhookId, topic, subject, needsPlatform, body, triggeredAt, error = null } = receipt;
    if (webhookId !== null && remember.run(shopId, webhookId, now).changes === 0) return false;
    insert.run(shopId, topic, subject, needsPlatform, body, triggeredAt, now, dueAtOf(receipt, now), error);
    return true;
  }

  return (receipts, now) =>
    db
      .transaction(() => {
        // Checks again, because the removal of a shop may have begun since the caller looked the shop up.
        const shops = new Set(
          [...new Set(receipts.map(({ shopId }) => shopId))].filter((id) => isServed.get(id) !== null),
        );
        return receipts.map((receipt) => shops.has(receipt.shopId) && receive(receipt, now));
      })
      .immediate();
}
