import type { Database } from "bun:sqlite";
import { SdsError } from "../../domain/error.ts";

/** A webhook of the platform, verified, on its way into the inbox. Times in epoch milliseconds. */
export interface Receipt {
  shopId: number;
  /** The platform's own id of it, by which one sent again is known; null where it has none. */
  webhookId: string | null;
  topic: string;
  /** What it is about: those about the same are processed one after another. */
  subject: string;
  /** Whether the platform has to be asked to process it. */
  needsPlatform: boolean;
  body: string;
  triggeredAt: number;
}

/** What waits of a shop, apart by whether the platform has to be asked. */
export interface Queue {
  shopId: number;
  needsPlatform: boolean;
}

export interface InboxItem {
  number: number;
  shopId: number;
  topic: string;
  subject: string;
  body: string;
  triggeredAt: number;
  /** Failed ones so far. */
  attempts: number;
}

/** One that waits to be processed, as far as it takes to choose. */
interface DueItem {
  number: number;
  subject: string;
}

export const INBOX_STATUSES = ["waiting", "failed"] as const;
type InboxStatus = (typeof INBOX_STATUSES)[number];

/** An entry as it is listed. */
export interface InboxEntry {
  number: number;
  topic: string;
  subject: string;
  status: InboxStatus;
  attempts: number;
  error: string | null;
  receivedAt: number;
  nextAttemptAt: number | null;
}

export interface InboxStore {
  /** Keeps what was not received before; when this resolves, it is on the disk. @returns for each whether it is new */
  receive(receipts: readonly Receipt[], now: number): Promise<boolean[]>;
  /** Queues with something to process, by shop. */
  dueQueues(now: number): Promise<Queue[]>;
  /** The oldest that are due of a queue. */
  due(queue: Queue, now: number, limit: number): Promise<DueItem[]>;
  /** What the webhooks of a shop that wait are about. */
  waitingSubjects(shopId: number): Promise<Set<string>>;
  /** Those of the numbers that are still there, in their order. */
  read(numbers: readonly number[]): Promise<InboxItem[]>;
  /** They could not be processed. @param nextAttemptAt null: not tried again but by hand */
  postpone(items: readonly InboxItem[], error: string, nextAttemptAt: number | null): Promise<void>;
  /** Newest first. */
  list(shopId: number, filter: { limit: number; status?: InboxStatus }): Promise<InboxEntry[]>;
  count(shopId: number): Promise<Record<InboxStatus, number>>;
  /** By hand, now. @throws SdsError `not_found` */
  retry(shopId: number, number: number, now: number): Promise<void>;
  /** @returns how many */
  retryFailed(shopId: number, now: number): Promise<number>;
  /** Forgets which webhooks were received before a time. */
  forgetReceipts(before: number): Promise<void>;
}

export function inboxStore(db: Database): InboxStore {
  const remember = db.prepare("INSERT OR IGNORE INTO platform_webhooks (shop_id, id, received_at) VALUES (?, ?, ?)");
  const insert = db.prepare(
    "INSERT INTO inbox (shop_id, topic, subject, asks, body, triggered_at, received_at, status, next_attempt_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?)",
  );
  const exists = db.prepare<{ 1: number }, [number]>("SELECT 1 FROM shops WHERE id = ?");
  // One seek a queue in the index of what is due, however much it is.
  const nextQueue = db.prepare<{ shopId: number; needsPlatform: number; at: number }, [number, number]>(
    `SELECT shop_id AS shopId, asks AS needsPlatform, next_attempt_at AS at FROM inbox INDEXED BY inbox_due
     WHERE next_attempt_at IS NOT NULL AND (shop_id, asks) > (?, ?) ORDER BY shop_id, asks, next_attempt_at LIMIT 1`,
  );
  const due = db.prepare<DueItem, [number, boolean, number, number]>(
    `SELECT number, subject FROM inbox INDEXED BY inbox_due
     WHERE shop_id = +? AND asks = +? AND next_attempt_at <= ? ORDER BY next_attempt_at, number LIMIT +?`,
  );
  const subjects = db.prepare<{ subject: string }, [number]>("SELECT DISTINCT subject FROM inbox WHERE shop_id = +? AND next_attempt_at IS NOT NULL");
  const read = db.prepare<InboxItem, [number]>(
    "SELECT number, shop_id AS shopId, topic, subject, body, triggered_at AS triggeredAt, attempts FROM inbox WHERE number = ?",
  );
  const postpone = db.prepare("UPDATE inbox SET attempts = attempts + 1, error = ?, status = ?, next_attempt_at = ? WHERE number = ?");
  const retry = db.prepare("UPDATE inbox SET status = 'waiting', attempts = 0, next_attempt_at = ? WHERE shop_id = ? AND number = ?");
  const retryFailed = db.prepare("UPDATE inbox SET status = 'waiting', attempts = 0, next_attempt_at = ? WHERE shop_id = ? AND status = 'failed'");
  const forget = db.prepare("DELETE FROM platform_webhooks WHERE received_at < ?");

  function take({ shopId, webhookId, topic, subject, needsPlatform, body, triggeredAt }: Receipt, now: number): boolean {
    if (webhookId !== null && remember.run(shopId, webhookId, now).changes === 0) return false;
    insert.run(shopId, topic, subject, needsPlatform, body, triggeredAt, now, now);
    return true;
  }

  return {
    async receive(receipts, now) {
      return db
        .transaction(() => {
          // Some may have been removed since the caller looked them up.
          const shops = new Set([...new Set(receipts.map(({ shopId }) => shopId))].filter((shopId) => exists.get(shopId) !== null));
          return receipts.map((receipt) => shops.has(receipt.shopId) && take(receipt, now));
        })
        .immediate();
    },

    async dueQueues(now) {
      const queues: Queue[] = [];
      for (let next = nextQueue.get(0, 0); next !== null; next = nextQueue.get(next.shopId, next.needsPlatform)) {
        if (next.at <= now) queues.push({ shopId: next.shopId, needsPlatform: next.needsPlatform === 1 });
      }
      return queues;
    },

    async due({ shopId, needsPlatform }, now, limit) {
      return due.all(shopId, needsPlatform, now, limit);
    },

    async waitingSubjects(shopId) {
      return new Set(subjects.all(shopId).map(({ subject }) => subject));
    },

    async read(numbers) {
      return numbers.flatMap((number) => read.get(number) ?? []);
    },

    async postpone(items, error, nextAttemptAt) {
      const status = nextAttemptAt === null ? "failed" : "waiting";
      db.transaction(() => {
        for (const { number } of items) postpone.run(error, status, nextAttemptAt, number);
      }).immediate();
    },

    async list(shopId, { limit, status }) {
      const ofStatus = status === undefined ? "" : `AND status = '${status}'`;
      return db
        .query<InboxEntry, { shopId: number; limit: number }>(
          `SELECT number, topic, subject, status, attempts, error, received_at AS receivedAt, next_attempt_at AS nextAttemptAt
           FROM inbox WHERE shop_id = $shopId ${ofStatus} ORDER BY number DESC LIMIT $limit`,
        )
        .all({ shopId, limit });
    },

    async count(shopId) {
      const count = (where: string) => db.query<{ n: number }, [number]>(`SELECT count(*) AS n FROM inbox WHERE shop_id = ? AND ${where}`).get(shopId)?.n ?? 0;
      return { waiting: count("next_attempt_at IS NOT NULL"), failed: count("status = 'failed'") };
    },

    async retry(shopId, number, now) {
      if (retry.run(now, shopId, number).changes === 0) throw new SdsError("not_found", `there is nothing with the number ${number} in the inbox`);
    },

    async retryFailed(shopId, now) {
      return retryFailed.run(now, shopId).changes;
    },

    async forgetReceipts(before) {
      forget.run(before);
    },
  };
}
