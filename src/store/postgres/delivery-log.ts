import { afterRetryByHand, type DeliveryKind, type DeliveryState } from "../../domain/deliveries/delivery.ts";
import { webhookDelivery } from "../../domain/deliveries/event-queue.ts";
import { SdsError } from "../../domain/error.ts";
import { timeOrderedId } from "../../domain/ids.ts";
import { type Delivery, type DeliveryDetails, type DeliveryStore, kindsOf } from "../port/deliveries.ts";
import { StoreError } from "../port/store-error.ts";
import { type Database, pipeline } from "./database.ts";
import { insertDeliveries } from "./delivery-inserter.ts";
import { lockServed, shopIds } from "./shop-ids.ts";

/** Rows in one transaction of pruning, or of retrying all dead deliveries, so that nobody waits long for it. */
const ROWS_PER_STEP = 200;

/** The columns of a `Delivery`. */
const LISTED = `id, kind, topic, test, status, attempts::float8 AS attempts,
  next_attempt_at::float8 AS "nextAttemptAt", last_status_code::float8 AS "lastStatusCode", error,
  created_at::float8 AS "createdAt"`;

interface StoredState extends DeliveryState {
  number: number;
  lease: string | null;
  claimableAt: number | null;
}

/** What people do with the log of deliveries: read it, retry, send a test event, and forget what is old. */
export function deliveryLog(
  db: Database,
  random: (bytes: number) => Uint8Array,
): Omit<DeliveryStore, "dueShops" | "paces" | "bringForward" | "turn"> {
  async function show(shopId: number, id: string): Promise<DeliveryDetails> {
    // One statement, so that the attempts are those that the delivery counts.
    const found = await db.get<Omit<DeliveryDetails, "history"> & { history: string }>(
      `SELECT ${LISTED}, body, secret_version::float8 AS "secretVersion", (
         SELECT coalesce(json_agg(json_build_object('number', number, 'startedAt', started_at, 'duration', duration,
           'statusCode', status_code, 'error', error, 'url', url, 'answer', answer) ORDER BY number), '[]')
         FROM attempts WHERE attempts.shop_id = deliveries.shop_id AND delivery = deliveries.number
       )::text AS history
       FROM deliveries WHERE shop_id = $1::bigint AND id = $2::text`,
      [shopId, id],
    );
    if (found === undefined) throw notFound(id);
    return { ...found, history: JSON.parse(found.history) as DeliveryDetails["history"] };
  }

  return {
    async list(shopId, { limit, status, kind }) {
      // The condition is part of the text, because a partial index is used only then. The kinds are read apart, because
      // the indexes have one kind after the other.
      const ofStatus = status === undefined ? "" : `AND status = '${status}'`;
      const newest = kindsOf(kind).map(
        (each) => `(
          SELECT * FROM deliveries WHERE shop_id = $1::bigint AND kind = '${each}' ${ofStatus}
          ORDER BY number DESC LIMIT $2::bigint
        )`,
      );
      return db.all<Delivery>(
        `SELECT ${LISTED} FROM (${newest.join(" UNION ALL ")}) AS newest ORDER BY number DESC LIMIT $2::bigint`,
        [shopId, limit],
      );
    },

    show,

    async retry(shopId, id, now) {
      await db.transaction(async (tx) => {
        const before = await tx.get<StoredState>(
          `SELECT number::float8 AS number, status, attempts::float8 AS attempts, round::float8 AS round,
             next_attempt_at::float8 AS "nextAttemptAt", lease, claimable_at::float8 AS "claimableAt"
           FROM deliveries WHERE shop_id = $1::bigint AND id = $2::text FOR UPDATE`,
          [shopId, id],
        );
        if (before === undefined) throw notFound(id);
        if (before.lease !== null && (before.claimableAt ?? 0) > now)
          throw new SdsError("conflict", `an attempt of ${id} is under way`);
        const { status, round, nextAttemptAt } = afterRetryByHand(before, now);
        await tx.run(
          `UPDATE deliveries SET status = $3::text, round = $4::bigint, next_attempt_at = $5::bigint,
             claimable_at = $5::bigint, lease = NULL, ended_at = NULL
           WHERE shop_id = $1::bigint AND number = $2::bigint`,
          [shopId, before.number, status, round, nextAttemptAt],
        );
      });
      return show(shopId, id);
    },

    async countWaiting(shopId) {
      const counts = await db.all<{ status: "pending" | "retrying"; n: number }>(
        `SELECT status, count(*)::float8 AS n FROM deliveries
         WHERE shop_id = $1::bigint AND claimable_at IS NOT NULL GROUP BY status`,
        [shopId],
      );
      return { pending: 0, retrying: 0, ...Object.fromEntries(counts.map(({ status, n }) => [status, n])) };
    },

    async countDead(shopId, since, kind) {
      const found = await db.get<{ n: number }>(
        `SELECT count(*)::float8 AS n FROM deliveries
         WHERE status = 'dead' AND shop_id = $1::bigint AND kind = ANY($2::text[]) AND created_at >= $3::bigint`,
        [shopId, kindsOf(kind), since],
      );
      return found?.n ?? 0;
    },

    async retryDead(shopId, since, now, kind) {
      let retried = 0;
      for (const each of kindsOf(kind)) {
        // In ascending order, so that a delivery that dies again meanwhile is not retried a second time.
        for (let after: number | null = 0; after !== null; ) {
          const step: DeadStep | undefined = await requeueSomeDead(db, shopId, each, since, now, after);
          retried += step?.requeued ?? 0;
          after = step?.found === ROWS_PER_STEP ? step.last : null;
        }
      }
      return retried;
    },

    async queueTest(shop, event, now) {
      const id = timeOrderedId("whd_", now, random);
      await db.transaction(async (tx) => {
        const [served, newest] = await pipeline([
          lockServed(tx, [shop.id]),
          tx.get<{ version: number | null }>(
            "SELECT max(version)::float8 AS version FROM webhook_secrets WHERE shop_id = $1::bigint",
            [shop.id],
          ),
        ]);
        if (!served.has(shop.id)) throw new StoreError("conflict", "the shop is being removed");
        await insertDeliveries(tx, shop.id, [webhookDelivery(id, event, shop, newest?.version ?? 0, now, true)], now);
      });
      return id;
    },

    async prune(before) {
      for (const shopId of await shopIds(db)) while ((await pruneSome(db, shopId, before)) > 0);
    },
  };
}

function notFound(id: string): SdsError {
  return new SdsError("not_found", `there is no delivery ${id}`);
}

/** A step of retrying all dead deliveries. */
interface DeadStep {
  found: number;
  requeued: number;
  /** The highest number that it found. */
  last: number | null;
}

/** @param after the number behind which it looks */
function requeueSomeDead(
  db: Database,
  shopId: number,
  kind: DeliveryKind,
  since: number,
  now: number,
  after: number,
): Promise<DeadStep | undefined> {
  // The update looks at the status again, which another process may have changed since the statement began.
  return db.get<DeadStep>(
    `WITH found AS (
       SELECT number FROM deliveries
       WHERE status = 'dead' AND shop_id = $1::bigint AND kind = $2::text AND number > $5::bigint
         AND created_at >= $3::bigint
       ORDER BY number LIMIT ${ROWS_PER_STEP}
     ), requeued AS (
       UPDATE deliveries SET status = 'pending', round = 0, next_attempt_at = $4::bigint, claimable_at = $4::bigint,
         lease = NULL, ended_at = NULL
       WHERE status = 'dead' AND shop_id = $1::bigint AND number = ANY(ARRAY(SELECT number FROM found))
       RETURNING number
     )
     SELECT (SELECT count(*) FROM found)::float8 AS found, (SELECT count(*) FROM requeued)::float8 AS requeued,
       (SELECT max(number) FROM found)::float8 AS last`,
    [shopId, kind, since, now, after],
  );
}

/** @returns how many deliveries it removed, with their attempts */
async function pruneSome(db: Database, shopId: number, before: number): Promise<number> {
  const pruned = await db.get<{ n: number }>(
    `WITH pruned AS (
       DELETE FROM deliveries WHERE status = 'delivered' AND shop_id = $1::bigint AND ended_at < $2::bigint
         AND number = ANY(ARRAY(
           SELECT number FROM deliveries WHERE status = 'delivered' AND shop_id = $1::bigint AND ended_at < $2::bigint
           LIMIT ${ROWS_PER_STEP}
         ))
       RETURNING number
     ), attempts_of_pruned AS (
       DELETE FROM attempts WHERE shop_id = $1::bigint AND delivery = ANY(ARRAY(SELECT number FROM pruned))
     )
     SELECT count(*)::float8 AS n FROM pruned`,
    [shopId, before],
  );
  return pruned?.n ?? 0;
}
