import type { Database } from "bun:sqlite";
import {
  afterAttempt,
  afterRetryByHand,
  DELIVERY_KINDS,
  type DeliveryKind,
  type DeliveryState,
} from "../../domain/delivery.ts";
import { SdsError } from "../../domain/error.ts";
import { webhookDelivery } from "../../domain/event-queue.ts";
import { randomId, timeOrderedId } from "../../domain/ids.ts";
import { nextTurn } from "../../lib/next-turn.ts";
import type {
  Attempt,
  AttemptResult,
  Claim,
  Delivery,
  DeliveryDetails,
  DeliveryStore,
  DueShop,
  EndpointPace,
} from "../deliveries.ts";
import { StoreError } from "../store-error.ts";
import { deliveryInserter } from "./delivery-inserter.ts";
import { removingShopIds, shopIds } from "./shop-ids.ts";

/** Rows in one transaction of pruning, or of retrying all dead deliveries, so that nobody waits long for it. */
const ROWS_PER_STEP = 200;

interface Stored extends DeliveryState {
  number: number;
  lease: string | null;
  claimableAt: number | null;
}

/** The place of a delivery in the order in which a shop's deliveries are planned. */
type Place = { at: number; number: number };
type StoredDetails = Omit<DeliveryDetails, "history" | "test"> & { test: number; number: number };

export function deliveryStore(db: Database, random: (bytes: number) => Uint8Array): DeliveryStore {
  const insert = deliveryInserter(db);
  const newestSecret = db.prepare<{ version: number | null }, [number]>(
    "SELECT max(version) AS version FROM webhook_secrets WHERE shop_id = +?",
  );
  const listColumns = `id, kind, topic, test, status, attempts, next_attempt_at AS nextAttemptAt,
    last_status_code AS lastStatusCode, error, created_at AS createdAt`;
  const stateColumns =
    "number, status, attempts, round, next_attempt_at AS nextAttemptAt, lease, claimable_at AS claimableAt";

  const removing = removingShopIds(db);
  // One index seek for each shop, however many deliveries are due.
  const nextShop = db.prepare<DueShop & { at: number }, [number]>(
    `SELECT shop_id AS shopId, kind, claimable_at AS at FROM deliveries INDEXED BY deliveries_due
     WHERE claimable_at IS NOT NULL AND shop_id > ? ORDER BY shop_id, claimable_at LIMIT 1`,
  );
  const claim = db.prepare<Omit<Claim, "url" | "domain">, [string, number, number, number, number]>(
    `UPDATE deliveries SET lease = ?, claimable_at = ? WHERE number IN (
       SELECT number FROM (
         SELECT number, kind, first_value(kind) OVER (ORDER BY claimable_at, number) AS firstKind
         FROM deliveries INDEXED BY deliveries_due
         WHERE shop_id = +? AND claimable_at <= ? ORDER BY claimable_at, number LIMIT +?
       ) WHERE kind = firstKind
     ) RETURNING id, number, kind, shop_id AS shopId, body, topic, secret_version AS secretVersion, attempts, round, lease`,
  );
  const endpointOf = db.prepare<{ domain: string; url: string | null }, [number]>(
    `SELECT domain, url FROM shops LEFT JOIN webhook_endpoints ON webhook_endpoints.shop_id = shops.id
     WHERE shops.id = +?`,
  );
  // What is new was queued, or retried by hand, and not claimed since then.
  const plannedAfter = db.prepare<Place & { isNew: number }, Place & { shopId: number }>(
    `SELECT number, claimable_at AS at, status = 'pending' AND lease IS NULL AS isNew
     FROM deliveries INDEXED BY deliveries_due
     WHERE claimable_at IS NOT NULL AND shop_id = +$shopId AND (claimable_at, number) > ($at, $number)
     ORDER BY claimable_at, number LIMIT ${ROWS_PER_STEP}`,
  );
  const makeDue = db.prepare(
    `UPDATE deliveries SET next_attempt_at = min(next_attempt_at, $now), claimable_at = $now
     WHERE shop_id = $shopId AND number = $number`,
  );
  const setPace = db.prepare(
    `UPDATE webhook_endpoints SET pace = $pace, timed_out_at = coalesce($timedOutAt, timed_out_at)
     WHERE shop_id = $shopId AND url = $url AND (pace IS NOT $pace OR $timedOutAt IS NOT NULL)`,
  );
  const allPaces = db.prepare<EndpointPace, []>(
    `SELECT shop_id AS shopId, url, pace, timed_out_at AS timedOutAt FROM webhook_endpoints
     WHERE pace IS NOT NULL AND url IS NOT NULL`,
  );
  const update = db.prepare(
    `UPDATE deliveries SET status = ?, attempts = ?, round = ?, next_attempt_at = ?, claimable_at = ?, lease = NULL,
       last_status_code = ?, error = ?, ended_at = ? WHERE shop_id = ? AND number = ? AND lease = ?`,
  );
  const addAttempt = db.prepare(
    `INSERT INTO attempts (shop_id, delivery, number, started_at, duration, status_code, error)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const find = db.prepare<Stored, [number, string]>(
    `SELECT ${stateColumns} FROM deliveries WHERE shop_id = ? AND id = ?`,
  );
  const requeue = db.prepare(
    `UPDATE deliveries SET status = ?, round = ?, next_attempt_at = ?, claimable_at = ?, lease = NULL, ended_at = NULL
     WHERE shop_id = ? AND number = ?`,
  );
  const details = db.prepare<StoredDetails, [number, string]>(
    `SELECT number, ${listColumns}, body, secret_version AS secretVersion FROM deliveries WHERE shop_id = ? AND id = ?`,
  );
  const history = db.prepare<Attempt, [number, number]>(
    `SELECT number, started_at AS startedAt, duration, status_code AS statusCode, error FROM attempts
     WHERE shop_id = +? AND delivery = +? ORDER BY number`,
  );
  const countDead = db.prepare<{ n: number }, [number, DeliveryKind, number]>(
    "SELECT count(*) AS n FROM deliveries WHERE status = 'dead' AND shop_id = ? AND kind = ? AND created_at >= ?",
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

  /** @returns false if another process took over the lease */
  function record({ claim, outcome, startedAt, duration, pace }: AttemptResult, waits: readonly number[]): boolean {
    const { shopId, number, lease } = claim;
    // Under its lease nothing else changes a delivery, so it is as it was claimed.
    const { status, attempts, round, nextAttemptAt } = afterAttempt(claim, outcome, startedAt, waits);
    const { statusCode, error } = outcome;
    const endedAt = nextAttemptAt === null ? startedAt + duration : null;
    const after = [status, attempts, round, nextAttemptAt, nextAttemptAt, statusCode, error, endedAt];
    if (update.run(...after, shopId, number, lease).changes === 0) return false;
    addAttempt.run(shopId, number, attempts, startedAt, duration, statusCode, error);
    if (pace !== undefined) setPace.run({ ...pace, shopId, url: claim.url });
    return true;
  }

  function claimFor(shopId: number, share: number, now: number, leaseUntil: number): Claim[] {
    const endpoint = endpointOf.get(shopId);
    if (endpoint === null) return [];
    return claim
      .all(randomId("", random), leaseUntil, shopId, now, share)
      .map((claimed) => ({ ...claimed, ...endpoint }));
  }

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
    async dueShops(now) {
      const shops: DueShop[] = [];
      const removed = removing();
      for (let next = nextShop.get(0); next !== null; next = nextShop.get(next.shopId)) {
        const { shopId, kind, at } = next;
        if (at <= now && !removed.has(shopId)) shops.push({ shopId, kind });
      }
      return shops;
    },

    async paces() {
      return allPaces.all();
    },

    async bringForward(latest, now) {
      let brought = 0;
      for (let next = nextShop.get(0); next !== null; next = nextShop.get(next.shopId)) {
        const { shopId } = next;
        let last: Place | undefined = { at: now, number: Number.MAX_SAFE_INTEGER };
        while (last !== undefined) {
          const { at, number } = last;
          const { planned, early } = db
            .transaction(() => {
              const planned = plannedAfter.all({ shopId, at, number });
              const early = planned.filter((each) => each.at > latest || each.isNew === 1);
              for (const each of early) makeDue.run({ shopId, number: each.number, now });
              return { planned, early };
            })
            .immediate();
          brought += early.length;
          last = planned[ROWS_PER_STEP - 1];
          if (last !== undefined) await nextTurn();
        }
      }
      return brought;
    },

    async turn(ended, shares, now, leaseUntil, waits) {
      return db
        .transaction(() => {
          const recorded = ended.filter((each) => record(each, waits));
          const removed = removing();
          const claimed = [...shares].flatMap(([shopId, share]) =>
            removed.has(shopId) ? [] : claimFor(shopId, share, now, leaseUntil),
          );
          return { recorded, claimed };
        })
        .immediate();
    },

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

function kindsOf(kind: DeliveryKind | undefined): readonly DeliveryKind[] {
  return kind === undefined ? DELIVERY_KINDS : [kind];
}
