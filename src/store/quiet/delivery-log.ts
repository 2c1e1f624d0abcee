import { type SQL, sql as template } from "drizzle-orm";
import { afterRetryByHand, type DeliveryKind, type DeliveryState } from "../../domain/deliveries/delivery.ts";
import { type NewDelivery, webhookDelivery } from "../../domain/deliveries/event-queue.ts";
import { subjectOf } from "../../domain/deliveries/subject.ts";
import { SdsError } from "../../domain/error.ts";
import { timeOrderedId } from "../../domain/ids.ts";
import { dayOf } from "../../lib/time.ts";
import { nextTurn } from "../../lib/waits.ts";
import { type DeliveryDetails, type DeliveryLog, kindsOf } from "../port/deliveries.ts";
import { StoreError } from "../port/store-error.ts";
import { deliveryCounts } from "./delivery-counts.ts";
import { KINDS, LISTED, pickDeliveries, searchDeliveries } from "./delivery-search.ts";
import { either, lockFor, numberTable, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";
import { servedShopIds } from "./shops.ts";

/** Maximum number of rows per transaction of `prune` or `retryDead`. A low number keeps lock times short. */
const ROWS_PER_STEP = 200;

const ATTEMPT = sql`'number', number, 'startedAt', started_at, 'duration', duration, 'statusCode', status_code,
  'error', error, 'url', url, 'answer', answer`;

interface StoredDelivery extends DeliveryState {
  number: number;
  lease: string | null;
  claimableAt: number | null;
}

interface Numbered {
  number: number;
}

/** Makes the log for operators and merchants. */
export function deliveryLog(db: QuietDatabase, random: (bytes: number) => Uint8Array): DeliveryLog {
  return {
    ...deliveryReads(db),
    ...deliveryCounts(db),

    async retry(shopId, id, now) {
      await db.transaction(() => retryByHand(db, shopId, id, now));
      return showDelivery(db, shopId, id);
    },

    async retryDead(shopId, since, now, kind) {
      let retried = 0;
      for (const each of kindsOf(kind)) {
        // Retries deliveries by ascending number. So a delivery that dies again during the loop is not retried twice.
        for (let last: number | undefined = 0; last !== undefined; await nextTurn()) {
          const after: number = last;
          const numbers = await db.transaction(() => requeueSomeDead(db, shopId, each, { since, after, now }));
          retried += numbers.length;
          last = numbers.at(-1);
        }
      }
      return retried;
    },

    async queueTest(shop, event, now) {
      const id = timeOrderedId("whd_", now, random);
      const delivery = (version: number) => webhookDelivery(id, event, shop, version, now, true);
      await db.transaction(() => queueDelivery(db, shop.id, delivery, now));
      return id;
    },

    async prune(before, countsBefore) {
      for (const shopId of await servedShopIds(db, hasOldRows(before, countsBefore))) {
        const ofShop = sql`shop_id = ${shopId}`;
        await db.run(sql`DELETE FROM delivery_counts WHERE ${oldCounts(ofShop, countsBefore)}`);
        while ((await db.transaction(() => pruneSome(db, shopId, before))) > 0) await nextTurn();
        while ((await pruneSomeUnsent(db, shopId, before)) > 0) await nextTurn();
      }
    },
  };
}

type DeliveryReads = Pick<DeliveryLog, "list" | "page" | "pick" | "newestTest" | "show" | "countWaiting" | "countDead">;

function deliveryReads(db: QuietDatabase): DeliveryReads {
  return {
    async list(shopId, filter) {
      const { limit } = filter;
      let { deliveries, older } = await searchDeliveries(db, shopId, filter);
      while (deliveries.length < limit && older !== null) {
        const next = await searchDeliveries(db, shopId, { ...filter, limit: limit - deliveries.length, before: older });
        deliveries = [...deliveries, ...next.deliveries];
        older = next.older;
      }
      return deliveries;
    },

    page: (shopId, filter) => searchDeliveries(db, shopId, filter),

    pick: (shopId, ids) => pickDeliveries(db, shopId, ids),

    async newestTest(shopId) {
      const newest = await db.get<{ id: string }>(
        sql`SELECT id FROM deliveries WHERE shop_id = ${shopId} AND test ORDER BY number DESC LIMIT 1`,
      );
      return newest?.id;
    },

    show: (shopId, id) => showDelivery(db, shopId, id),

    async countWaiting(shopId, limit) {
      const counts = await db.all<{ status: "pending" | "retrying"; n: number }>(
        sql`SELECT status, count(*) AS n FROM (
            SELECT status FROM deliveries WHERE shop_id = ${shopId} AND claimable_at IS NOT NULL
            ${limit === undefined ? sql`` : sql`LIMIT ${limit}`}
          ) AS waiting GROUP BY status`,
      );
      return { pending: 0, retrying: 0, ...Object.fromEntries(counts.map(({ status, n }) => [status, n])) };
    },

    async countDead(shopId, since, kind) {
      const counts = kindsOf(kind).map((each) =>
        db.get<{ n: number }>(
          sql`SELECT count(*) AS n FROM deliveries
            WHERE status = 'dead' AND shop_id = ${shopId} AND kind = ${KINDS[each]} AND created_at >= ${since}`,
        ),
      );
      return (await Promise.all(counts)).reduce((sum, counted) => sum + (counted?.n ?? 0), 0);
    },
  };
}

/** Reads a delivery and its attempts in one statement, so that the attempts match the delivery's number of attempts. */
async function showDelivery(db: QuietDatabase, shopId: number, id: string): Promise<DeliveryDetails> {
  const history = either(db, {
    sqlite: sql`json_group_array(json_object(${ATTEMPT}) ORDER BY number)`,
    postgres: sql`coalesce(json_agg(json_build_object(${ATTEMPT}) ORDER BY number), '[]')::text`,
  });
  const found = await db.get<Omit<DeliveryDetails, "history" | "subject"> & { history: string }>(
    sql`SELECT ${LISTED}, body, secret_version AS "secretVersion", (
        SELECT ${history} FROM attempts WHERE attempts.shop_id = deliveries.shop_id AND delivery = deliveries.number
      ) AS history
      FROM deliveries WHERE shop_id = ${shopId} AND id = ${id}`,
  );
  if (found === undefined) throw notFound(id);
  return {
    ...found,
    test: Boolean(found.test),
    subject: subjectOf(found.topic, found.body),
    history: JSON.parse(found.history) as DeliveryDetails["history"],
  };
}

function* retryByHand(db: QuietDatabase, shopId: number, id: string, now: number): TransactionWork<void> {
  const before = yield* tx.get<StoredDelivery>(
    sql`SELECT number, status, attempts, round, next_attempt_at AS "nextAttemptAt", lease,
        claimable_at AS "claimableAt"
      FROM deliveries WHERE shop_id = ${shopId} AND id = ${id} ${lockFor(db, "UPDATE")}`,
  );
  if (before === undefined) throw notFound(id);
  if (before.lease !== null && (before.claimableAt ?? 0) > now)
    throw new SdsError("conflict", `an attempt of ${id} is under way`);
  const { status, round, nextAttemptAt } = afterRetryByHand(before, now);
  yield* tx.run(
    sql`UPDATE deliveries SET status = ${status}, round = ${round}, next_attempt_at = ${nextAttemptAt},
        claimable_at = ${nextAttemptAt}, lease = NULL, ended_at = NULL
      WHERE shop_id = ${shopId} AND number = ${before.number}`,
  );
}

/** Retries some dead deliveries. @returns their numbers, ascending; empty if no dead delivery follows `after` */
function* requeueSomeDead(
  db: QuietDatabase,
  shopId: number,
  kind: DeliveryKind,
  { since, after, now }: { since: number; after: number; now: number },
): TransactionWork<number[]> {
  const dead = yield* tx.all<Numbered>(
    sql`SELECT number FROM deliveries
      WHERE status = 'dead' AND shop_id = ${shopId} AND kind = ${KINDS[kind]} AND number > ${after}
        AND created_at >= ${since}
      ORDER BY number LIMIT ${ROWS_PER_STEP} ${lockFor(db, "NO KEY UPDATE")}`,
  );
  const numbers = dead.map(({ number }) => number);
  yield* tx.run(
    sql`UPDATE deliveries SET status = 'pending', round = 0, next_attempt_at = ${now}, claimable_at = ${now},
        lease = NULL, ended_at = NULL
      WHERE shop_id = ${shopId} AND number IN (SELECT number FROM ${numberTable(db, numbers)})`,
  );
  return numbers;
}

/** Queues a delivery that is due now. @param deliveryWith makes the delivery for the newest version of the secret */
function* queueDelivery(
  db: QuietDatabase,
  shopId: number,
  deliveryWith: (secretVersion: number) => NewDelivery,
  now: number,
): TransactionWork<void> {
  const served = yield* tx.get(
    sql`SELECT 1 FROM shops WHERE id = ${shopId} AND removal_started_at IS NULL ${lockFor(db, "KEY SHARE")}`,
  );
  if (served === undefined) throw new StoreError("conflict", "the shop is being removed");
  const newest = yield* tx.get<{ version: number | null }>(
    sql`SELECT max(version) AS version FROM webhook_secrets WHERE shop_id = ${shopId}`,
  );
  yield* insertDelivery(shopId, deliveryWith(newest?.version ?? 0), now);
}

/** Queues a delivery that is due now. The caller must have checked that the shop is not being removed. */
export function* insertDelivery(shopId: number, delivery: NewDelivery, now: number): TransactionWork<void> {
  const { id, kind, topic, isTest, body, secretVersion } = delivery;
  yield* tx.run(
    sql`INSERT INTO deliveries
        (id, shop_id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
      VALUES (${id}, ${shopId}, ${kind}, ${topic}, ${isTest}, ${body}, ${secretVersion}, 'pending',
        ${now}, ${now}, ${now})`,
  );
}

const oldCounts = (ofShop: SQL, before: number) =>
  sql`${ofShop} AND kind IN ('webhook', 'trigger') AND day < ${before}`;

const oldDeliveries = (ofShop: SQL, before: number) => sql`status = 'delivered' AND ${ofShop} AND ended_at < ${before}`;

const oldUnsentEvents = (ofShop: SQL, before: number) => sql`${ofShop} AND day < ${dayOf(before)}`;

/** Returns an SQL condition that is true for a shop with rows to prune. */
function hasOldRows(before: number, countsBefore: number): SQL {
  const ofShop = sql`shop_id = shops.id`;
  return sql`EXISTS (SELECT 1 FROM deliveries WHERE ${oldDeliveries(ofShop, before)})
    OR EXISTS (SELECT 1 FROM unsent_events WHERE ${oldUnsentEvents(ofShop, before)})
    OR EXISTS (SELECT 1 FROM delivery_counts WHERE ${oldCounts(ofShop, countsBefore)})`;
}

/** Removes some old deliveries with their attempts. @returns the number of removed deliveries */
function* pruneSome(db: QuietDatabase, shopId: number, before: number): TransactionWork<number> {
  const old = yield* tx.all<Numbered>(
    sql`SELECT number FROM deliveries WHERE ${oldDeliveries(sql`shop_id = ${shopId}`, before)}
      LIMIT ${ROWS_PER_STEP} ${lockFor(db, "UPDATE")}`,
  );
  if (old.length === 0) return 0;
  const numbers = numberTable(
    db,
    old.map(({ number }) => number),
  );
  yield* tx.run(sql`DELETE FROM attempts WHERE shop_id = ${shopId} AND delivery IN (SELECT number FROM ${numbers})`);
  return yield* tx.run(
    sql`DELETE FROM deliveries WHERE shop_id = ${shopId} AND number IN (SELECT number FROM ${numbers})`,
  );
}

/** Removes some events of days that ended before a time. @returns the number of removed events */
async function pruneSomeUnsent(db: QuietDatabase, shopId: number, before: number): Promise<number> {
  const key = template.raw("day, subject, topic, cycle");
  return db.run(
    sql`DELETE FROM unsent_events WHERE shop_id = ${shopId} AND (${key}) IN (
        SELECT ${key} FROM unsent_events WHERE ${oldUnsentEvents(sql`shop_id = ${shopId}`, before)}
        ORDER BY ${key} LIMIT ${ROWS_PER_STEP}
      )`,
  );
}

function notFound(id: string): SdsError {
  return new SdsError("not_found", `there is no delivery ${id}`);
}
