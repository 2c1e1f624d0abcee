import { SdsError } from "../../domain/error.ts";
import { nextTurn } from "../../lib/waits.ts";
import type { InboxEntry, InboxItem, InboxItems, MergedItem } from "../port/inbox.ts";
import {
  either,
  lockFor,
  numberTable,
  type QuietDatabase,
  sql,
  type TransactionWork,
  tableOf,
  tx,
} from "./quiet-database.ts";
import { servedShopIds } from "./shops.ts";

/** Maximum number of ids per transaction of `forgetReceipts`. A low number keeps waits of other transactions short. */
const IDS_PER_STEP = 1_000;

/** Literals, not parameters: an engine uses a partial index only if the statement's text has the index's condition. */
const STATUSES = { waiting: sql`'waiting'`, failed: sql`'failed'` };

/** Makes all operations on stored items, except the search for due items. */
export function inboxItems(db: QuietDatabase): InboxItems {
  return {
    ...inboxReads(db),

    async postpone(shopId, numbers, error, nextAttemptAt) {
      const status = nextAttemptAt === null ? "failed" : "waiting";
      await db.run(
        sql`UPDATE inbox SET attempts = attempts + 1, error = ${error}, status = ${status},
            next_attempt_at = ${nextAttemptAt}
          WHERE shop_id = ${shopId} AND number IN (SELECT number FROM ${numberTable(db, numbers)})`,
      );
    },

    async retry(shopId, number, now) {
      const retried = await db.run(
        sql`UPDATE inbox SET status = 'waiting', attempts = 0, next_attempt_at = ${now}
          WHERE shop_id = ${shopId} AND number = ${number}`,
      );
      if (retried === 0) throw new SdsError("not_found", `there is no item with the id ${number} in the inbox`);
    },

    async merge(shopId, item, others) {
      await db.transaction(() => mergeItems(db, shopId, item, others));
    },

    async retryAbout(shopId, subject, now) {
      const retried = await db.run(
        sql`UPDATE inbox SET status = 'waiting', attempts = 0, next_attempt_at = ${now}
          WHERE shop_id = ${shopId} AND subject = ${subject} AND status = 'failed'`,
      );
      if (retried > 0) return true;
      const waiting = await db.get<{ found: number }>(
        sql`SELECT 1 AS found FROM inbox
          WHERE shop_id = ${shopId} AND subject = ${subject} AND next_attempt_at IS NOT NULL LIMIT 1`,
      );
      return waiting !== undefined;
    },

    async noteError(shopId, subject, error) {
      await db.run(
        sql`UPDATE inbox SET error = ${error}
          WHERE shop_id = ${shopId} AND subject = ${subject} AND next_attempt_at IS NOT NULL`,
      );
    },

    async retryFailed(shopId, now) {
      return db.run(
        sql`UPDATE inbox SET status = 'waiting', attempts = 0, next_attempt_at = ${now}
          WHERE shop_id = ${shopId} AND status = 'failed'`,
      );
    },

    async forgetReceipts(before) {
      const hasOld = sql`EXISTS (SELECT 1 FROM platform_webhooks WHERE shop_id = shops.id AND received_at < ${before})`;
      for (const shopId of await servedShopIds(db, hasOld)) {
        while ((await db.transaction(() => forgetSome(db, shopId, before))) > 0) await nextTurn();
      }
    },
  };
}

function inboxReads(
  db: QuietDatabase,
): Pick<InboxItems, "waitingSubjects" | "read" | "list" | "count" | "lastReceivedAt"> {
  return {
    async waitingSubjects(shopId) {
      const found = await db.all<{ subject: string }>(
        sql`SELECT DISTINCT subject FROM inbox WHERE shop_id = ${shopId} AND next_attempt_at IS NOT NULL`,
      );
      return new Set(found.map(({ subject }) => subject));
    },

    async read(shopId, numbers) {
      return db.all<InboxItem>(
        sql`SELECT number, shop_id AS "shopId", topic, subject, body, triggered_at AS "triggeredAt", attempts, error
          FROM inbox
          WHERE shop_id = ${shopId} AND number IN (SELECT number FROM ${numberTable(db, numbers)}) ORDER BY number`,
      );
    },

    async list(shopId, { limit, status }) {
      const ofStatus = status === undefined ? sql`` : sql`AND status = ${STATUSES[status]}`;
      // An urgent item is due at 0. For such an item, the list shows the time when it was received.
      const nextAttemptAt = either(db, {
        sqlite: sql`max(next_attempt_at, received_at)`,
        postgres: sql`CASE WHEN next_attempt_at IS NOT NULL THEN greatest(next_attempt_at, received_at) END`,
      });
      return db.all<InboxEntry>(
        sql`SELECT number, topic, subject, status, attempts, error, received_at AS "receivedAt",
            ${nextAttemptAt} AS "nextAttemptAt"
          FROM inbox WHERE shop_id = ${shopId} ${ofStatus} ORDER BY number DESC LIMIT ${limit}`,
      );
    },

    async count(shopId) {
      const found = await db.get<{ waiting: number; failed: number }>(
        sql`SELECT
            (SELECT count(*) FROM inbox WHERE shop_id = ${shopId} AND next_attempt_at IS NOT NULL) AS waiting,
            (SELECT count(*) FROM inbox WHERE shop_id = ${shopId} AND status = 'failed') AS failed`,
      );
      return found ?? { waiting: 0, failed: 0 };
    },

    async lastReceivedAt(shopId) {
      const found = await db.get<{ at: number | null }>(
        sql`SELECT max(received_at) AS at FROM platform_webhooks WHERE shop_id = ${shopId}`,
      );
      return found?.at ?? null;
    },
  };
}

function* mergeItems(
  db: QuietDatabase,
  shopId: number,
  { number, topic, body, triggeredAt }: MergedItem,
  others: readonly number[],
): TransactionWork<void> {
  yield* tx.run(
    sql`UPDATE inbox SET topic = ${topic}, body = ${body}, triggered_at = ${triggeredAt}
      WHERE shop_id = ${shopId} AND number = ${number}`,
  );
  yield* tx.run(
    sql`DELETE FROM inbox WHERE shop_id = ${shopId} AND number IN (SELECT number FROM ${numberTable(db, others)})`,
  );
}

/** Forgets some ids. @returns the number of forgotten ids */
function* forgetSome(db: QuietDatabase, shopId: number, before: number): TransactionWork<number> {
  const old = yield* tx.all<{ id: string }>(
    sql`SELECT id FROM platform_webhooks WHERE shop_id = ${shopId} AND received_at < ${before}
      LIMIT ${IDS_PER_STEP} ${lockFor(db, "UPDATE")}`,
  );
  if (old.length === 0) return 0;
  const ids = tableOf(db, "old", { id: "text" }, old);
  return yield* tx.run(sql`DELETE FROM platform_webhooks WHERE shop_id = ${shopId} AND id IN (SELECT id FROM ${ids})`);
}
