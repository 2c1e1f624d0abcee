import type { Database } from "bun:sqlite";
import { afterRetryByHand, type DeliveryKind, type DeliveryState } from "../../domain/deliveries/delivery.ts";
import { webhookDelivery } from "../../domain/deliveries/event-queue.ts";
import { SdsError } from "../../domain/error.ts";
import { timeOrderedId } from "../../domain/ids.ts";
import { nextTurn } from "../../lib/turns.ts";
import { type Attempt, type Delivery, type DeliveryDetails, type DeliveryStore, kindsOf } from "../port/deliveries.ts";
import { StoreError } from "../port/store-error.ts";
import { deliveryInserter } from "./delivery-inserter.ts";
import { removingShopIds, shopIds } from "./shop-ids.ts";

/** Rows in one transaction of pruning, or of retrying all dead deliveries, so that nobody waits long for it. */
const ROWS_PER_STEP = 200;

/** The columns of a `StoredState`. */
const STATE_COLUMNS =
  "number, status, attempts, round, next_attempt_at AS nextAttemptAt, lease, claimable_at AS claimableAt";

interface StoredState extends DeliveryState {
  number: number;
  lease: string | null;
  claimableAt: number | null;
}

type StoredDetails = Omit<DeliveryDetails, "history" | "test"> & { test: number; number: number };

/** What people do with the log of deliveries: read it, retry, send a test event, and forget what is old. */
export function deliveryLog(
  db: Database,
  random: (bytes: number) => Uint8Array,
): Omit<DeliveryStore, "dueShops" | "paces" | "bringForward" | "turn"> {
  const insert = deliveryInserter(db);
  const newestSecret = db.prepare<{ version: number | null }, [number]>(
    "SELECT max(version) AS version FROM webhook_secrets WHERE shop_id = +?",
  );
  const listColumns = `id, kind, topic, test, status, attempts, next_attempt_at AS nextAttemptAt,
    last_status_code AS lastStatusCode, error, created_at AS createdAt`;
  const removing = removingShopIds(db);
  const find = db.prepare<StoredState, [number, string]>(
    `SELECT ${STATE_COLUMNS} FROM deliveries WHERE shop_id = ? AND id = ?`,
  );
  const requeue = db.prepare(
    `UPDATE deliveries SET status = ?, round = ?, next_attempt_at = ?, claimable_at = ?, lease = NULL, ended_at = NULL
     WHERE shop_id = ? AND number = ?`,
  );
  const details = db.prepare<StoredDetails, [number, string]>(
    `SELECT number, ${listColumns}, body, secret_version AS secretVersion FROM deliveries WHERE shop_id = ? AND id = ?`,
  );
  const history = db.prepare<Attempt, [number, number]>(
    `SELECT number, started_at AS startedAt, duration, status_code AS statusCode, error, url, answer FROM attempts
     WHERE shop_id = +? AND delivery = +? ORDER BY number`,
  );
  const countDead = db.prepare<{ n: number }, [number, DeliveryKind, number]>(
    "SELECT count(*) AS n FROM deliveries WHERE status = 'dead' AND shop_id = ? AND kind = ? AND created_at >= ?",
  );
  const countWaiting = db.prepare<{ status: "pending" | "retrying"; n: number }, [number]>(
    `SELECT status, count(*) AS n FROM deliveries WHERE shop_id = +? AND claimable_at IS NOT NULL GROUP BY status`,
  );
  const requeueDead = db.prepare(
    `UPDATE deliveries
     SET status = 'pending', round = 0, next_attempt_at = $now, claimable_at = $now, lease = NULL, ended_at = NULL
     WHERE number IN (
       SELECT number FROM deliveries
       WHERE status = 'dead' AND shop_id = +$shopId AND kind = +$kind AND number > $after AND created_at >= $since
       ORDER BY number LIMIT ${ROWS_PER_STEP}
     ) RETURNING number`,
  );
  const pruneSome = db.prepare(
    `DELETE FROM deliveries WHERE number IN (
       SELECT number FROM deliveries WHERE status = 'delivered' AND shop_id = ? AND ended_at < ? LIMIT ${ROWS_PER_STEP}
     )`,
  );

  function withTest<T extends { test: number }>(row: T): Omit<T, "test"> & { test: boolean } {
    return { ...row, test: row.test === 1 };
  }

  async function show(shopId: number, id: string): Promise<DeliveryDetails> {
    const found = details.get(shopId, id);
    if (found === null) throw new SdsError("not_found", `there is no delivery ${id}`);
    const { number, ...delivery } = withTest(found);
    return { ...delivery, history: history.all(shopId, number) };
  }

  return {
    async list(shopId, { limit, status, kind }) {
      // Literals instead of parameters, because SQLite uses a partial index only if it sees the condition in the text.
      // Without `INDEXED BY` it would read all deliveries of a shop that has no dead ones. The kinds are read apart,
      // because the indexes have one kind after the other.
      const ofStatus = status === undefined ? "" : `AND status = '${status}'`;
      const newest = kindsOf(kind).map(
        (each) =>
          `SELECT * FROM (
             SELECT number, ${listColumns} FROM deliveries ${status === "dead" ? "INDEXED BY deliveries_dead" : ""}
             WHERE shop_id = $shopId AND kind = '${each}' ${ofStatus} ORDER BY number DESC LIMIT $limit
           )`,
      );
      const query = db.query<
        Omit<Delivery, "test"> & { test: number; number: number },
        { shopId: number; limit: number }
      >(`${newest.join(" UNION ALL ")} ORDER BY number DESC LIMIT $limit`);
      return query.all({ shopId, limit }).map(({ number: _, ...row }) => withTest(row));
    },

    show,

    async retry(shopId, id, now) {
      db.transaction(() => {
        const before = find.get(shopId, id);
        if (before === null) throw new SdsError("not_found", `there is no delivery ${id}`);
        if (before.lease !== null && (before.claimableAt ?? 0) > now)
          throw new SdsError("conflict", `an attempt of ${id} is under way`);
        const { status, round, nextAttemptAt } = afterRetryByHand(before, now);
        requeue.run(status, round, nextAttemptAt, nextAttemptAt, shopId, before.number);
      }).immediate();
      return show(shopId, id);
    },

    async countWaiting(shopId) {
      const counts = countWaiting.all(shopId).map(({ status, n }) => [status, n]);
      return { pending: 0, retrying: 0, ...Object.fromEntries(counts) };
    },

    async countDead(shopId, since, kind) {
      return kindsOf(kind).reduce((sum, each) => sum + (countDead.get(shopId, each, since)?.n ?? 0), 0);
    },

    async retryDead(shopId, since, now, kind) {
      let retried = 0;
      for (const each of kindsOf(kind)) {
        // In ascending order, so that a delivery that dies again meanwhile is not retried a second time.
        for (let after = 0; ; await nextTurn()) {
          const requeued = requeueDead.all({ shopId, since, now, kind: each, after }) as { number: number }[];
          retried += requeued.length;
          if (requeued.length < ROWS_PER_STEP) break;
          after = Math.max(after, ...requeued.map(({ number }) => number));
        }
      }
      return retried;
    },

    async queueTest(shop, event, now) {
      const id = timeOrderedId("whd_", now, random);
      db.transaction(() => {
        if (removing().has(shop.id)) throw new StoreError("conflict", "the shop is being removed");
        const version = newestSecret.get(shop.id)?.version ?? 0;
        insert(shop.id, webhookDelivery(id, event, shop, version, now, true), now);
      }).immediate();
      return id;
    },

    async prune(before) {
      for (const shopId of shopIds(db)) {
        while (pruneSome.run(shopId, before).changes > 0) await nextTurn();
      }
    },
  };
}
