import type { Database } from "bun:sqlite";
import {
  afterAttempt,
  afterRetryByHand,
  DELIVERY_KINDS,
  type DeliveryKind,
  type DeliveryState,
  type DeliveryStatus,
  type Outcome,
} from "../../domain/delivery.ts";
import { SdsError } from "../../domain/error.ts";
import type { Event } from "../../domain/event.ts";
import { randomId } from "../../domain/ids.ts";
import { openOutbox } from "./outbox.ts";

/** An entry of the delivery log. Times in epoch milliseconds. */
export interface Delivery {
  id: string;
  kind: DeliveryKind;
  topic: string;
  test: boolean;
  status: DeliveryStatus;
  /** In all, over all rounds. */
  attempts: number;
  nextAttemptAt: number | null;
  lastStatusCode: number | null;
  error: string | null;
  createdAt: number;
}

interface Attempt extends Outcome {
  number: number;
  startedAt: number;
  /** Milliseconds. */
  duration: number;
}

export interface DeliveryDetails extends Delivery {
  body: string;
  secretVersion: number;
  history: Attempt[];
}

/** A delivery that this process, and no other, may attempt until its lease ends. */
export interface Claim {
  id: string;
  kind: DeliveryKind;
  shopId: number;
  body: string;
  topic: string;
  secretVersion: number;
  /** The shop's URL now; null if it has none any more. */
  url: string | null;
  lease: string;
}

/** An attempt that came to its end. */
export interface AttemptResult {
  claim: Claim;
  outcome: Outcome;
  startedAt: number;
  duration: number;
}

interface DeliveryFilter {
  limit: number;
  status?: DeliveryStatus;
  kind?: DeliveryKind;
}

export interface DeliveryStore {
  /** Shops with something to attempt, by id. */
  dueShops(now: number): Promise<number[]>;
  /**
   * Records what came to its end and claims what comes next, in one transaction. An attempt whose lease another process took over
   * meanwhile is not recorded.
   * @param shares how many deliveries to claim for each shop
   * @param waits see `afterAttempt`
   */
  turn(finished: readonly AttemptResult[], shares: ReadonlyMap<number, number>, now: number, leaseUntil: number, waits: readonly number[]): Promise<Claim[]>;
  /** Newest first. */
  list(shopId: number, filter: DeliveryFilter): Promise<Delivery[]>;
  /** @throws SdsError `not_found` */
  show(shopId: number, id: string): Promise<DeliveryDetails>;
  /** By hand, now. @throws SdsError `not_found`, or `conflict` while an attempt is under way */
  retry(shopId: number, id: string, now: number): Promise<Delivery>;
  /** How many are dead, of those queued since a time, of one kind or both. */
  countDead(shopId: number, since: number, kind?: DeliveryKind): Promise<number>;
  /** Retries them. @returns how many */
  retryDead(shopId: number, since: number, now: number, kind?: DeliveryKind): Promise<number>;
  queueTest(shop: { id: number; domain: string }, event: Event, now: number): Promise<string>;
  /** Forgets what was delivered before a time; dead deliveries stay. */
  prune(before: number): Promise<void>;
}

/** One transaction of a pruning or of a retry of all that is dead, so that it holds up nobody. */
const AT_ONCE = 1_000;

interface Stored extends DeliveryState {
  number: number;
  lease: string | null;
  claimableAt: number | null;
}

export function deliveryStore(db: Database, random: (bytes: number) => Uint8Array): DeliveryStore {
  const outbox = openOutbox(db, random);
  const listed =
    "id, kind, topic, test, status, attempts, next_attempt_at AS nextAttemptAt, last_status_code AS lastStatusCode, error, created_at AS createdAt";
  const stated = "number, status, attempts, round, next_attempt_at AS nextAttemptAt, lease, claimable_at AS claimableAt";

  // One seek a shop in the index of due deliveries, however many there are.
  const nextShop = db.prepare<{ shopId: number; at: number }, [number]>(
    "SELECT shop_id AS shopId, claimable_at AS at FROM deliveries INDEXED BY deliveries_due WHERE claimable_at IS NOT NULL AND shop_id > ? ORDER BY shop_id, claimable_at LIMIT 1",
  );
  const claim = db.prepare<Omit<Claim, "url">, [string, number, number, number, number]>(
    `UPDATE deliveries SET lease = ?, claimable_at = ? WHERE number IN (
       SELECT number FROM deliveries INDEXED BY deliveries_due WHERE shop_id = +? AND claimable_at <= ? ORDER BY claimable_at LIMIT +?
     ) RETURNING id, kind, shop_id AS shopId, body, topic, secret_version AS secretVersion, lease`,
  );
  const urlOf = db.prepare<{ url: string | null }, [number]>("SELECT url FROM webhook_endpoints WHERE shop_id = ?");
  const underLease = db.prepare<Stored, [string, string]>(`SELECT ${stated} FROM deliveries WHERE id = ? AND lease = ?`);
  const update = db.prepare(
    `UPDATE deliveries SET status = ?, attempts = ?, round = ?, next_attempt_at = ?, claimable_at = ?, lease = NULL,
       last_status_code = ?, error = ?, ended_at = ? WHERE number = ?`,
  );
  const addAttempt = db.prepare("INSERT INTO attempts (delivery, number, started_at, duration, status_code, error) VALUES (?, ?, ?, ?, ?, ?)");
  const find = db.prepare<Stored, [number, string]>(`SELECT ${stated} FROM deliveries WHERE shop_id = ? AND id = ?`);
  const requeue = db.prepare(
    "UPDATE deliveries SET status = ?, round = ?, next_attempt_at = ?, claimable_at = ?, lease = NULL, ended_at = NULL WHERE number = ?",
  );
  const details = db.prepare<Omit<DeliveryDetails, "history" | "test"> & { test: number; number: number }, [number, string]>(
    `SELECT number, ${listed}, body, secret_version AS secretVersion FROM deliveries WHERE shop_id = ? AND id = ?`,
  );
  const history = db.prepare<Attempt, [number]>(
    "SELECT number, started_at AS startedAt, duration, status_code AS statusCode, error FROM attempts WHERE delivery = +? ORDER BY number",
  );
  const countDead = db.prepare<{ n: number }, [number, DeliveryKind, number]>(
    "SELECT count(*) AS n FROM deliveries WHERE status = 'dead' AND shop_id = ? AND kind = ? AND created_at >= ?",
  );
  const requeueDead = db.prepare(
    `UPDATE deliveries SET status = 'pending', round = 0, next_attempt_at = $now, claimable_at = $now, lease = NULL, ended_at = NULL
     WHERE number IN (
       SELECT number FROM deliveries WHERE status = 'dead' AND shop_id = +$shopId AND kind = +$kind AND number > $after AND created_at >= $since
       ORDER BY number LIMIT ${AT_ONCE}
     ) RETURNING number`,
  );
  const pruneSome = db.prepare(
    `DELETE FROM deliveries WHERE number IN (SELECT number FROM deliveries WHERE status = 'delivered' AND ended_at < ? LIMIT ${AT_ONCE})`,
  );

  function record({ claim, outcome, startedAt, duration }: AttemptResult, waits: readonly number[]): void {
    const before = underLease.get(claim.id, claim.lease);
    if (before === null) return;
    const { status, attempts, round, nextAttemptAt } = afterAttempt(before, outcome, startedAt, waits);
    const endedAt = nextAttemptAt === null ? startedAt + duration : null;
    update.run(status, attempts, round, nextAttemptAt, nextAttemptAt, outcome.statusCode, outcome.error, endedAt, before.number);
    addAttempt.run(before.number, attempts, startedAt, duration, outcome.statusCode, outcome.error);
  }

  function claimFor(shopId: number, share: number, now: number, leaseUntil: number): Claim[] {
    const url = urlOf.get(shopId)?.url ?? null;
    return claim.all(randomId("", random), leaseUntil, shopId, now, share).map((claimed) => ({ ...claimed, url }));
  }

  function withTest<T extends { test: number }>(row: T): Omit<T, "test"> & { test: boolean } {
    return { ...row, test: row.test === 1 };
  }

  return {
    async dueShops(now) {
      const shops: number[] = [];
      for (let next = nextShop.get(0); next !== null; next = nextShop.get(next.shopId)) {
        if (next.at <= now) shops.push(next.shopId);
      }
      return shops;
    },

    async turn(finished, shares, now, leaseUntil, waits) {
      return db
        .transaction(() => {
          for (const each of finished) record(each, waits);
          return [...shares].flatMap(([shopId, share]) => claimFor(shopId, share, now, leaseUntil));
        })
        .immediate();
    },

    async list(shopId, { limit, status, kind }) {
      // Literals of our own, not parameters: the index of the dead can only be used where it is seen that it serves, and would not be by itself: of a shop without
      // dead ones all would be looked at. Both kinds are read apart, for the indexes have one after the other.
      const ofStatus = status === undefined ? "" : `AND status = '${status}'`;
      const newest = kindsOf(kind).map(
        (each) =>
          `SELECT * FROM (SELECT number, ${listed} FROM deliveries ${status === "dead" ? "INDEXED BY deliveries_dead" : ""} WHERE shop_id = $shopId AND kind = '${each}' ${ofStatus} ORDER BY number DESC LIMIT $limit)`,
      );
      const query = db.query<Omit<Delivery, "test"> & { test: number; number: number }, { shopId: number; limit: number }>(
        `${newest.join(" UNION ALL ")} ORDER BY number DESC LIMIT $limit`,
      );
      return query.all({ shopId, limit }).map(({ number: _, ...row }) => withTest(row));
    },

    async show(shopId, id) {
      const found = details.get(shopId, id);
      if (found === null) throw new SdsError("not_found", `there is no delivery ${id}`);
      const { number, ...delivery } = withTest(found);
      return { ...delivery, history: history.all(number) };
    },

    async retry(shopId, id, now) {
      db.transaction(() => {
        const before = find.get(shopId, id);
        if (before === null) throw new SdsError("not_found", `there is no delivery ${id}`);
        if (before.lease !== null && (before.claimableAt ?? 0) > now) throw new SdsError("conflict", `an attempt of ${id} is under way`);
        const { status, round, nextAttemptAt } = afterRetryByHand(before, now);
        requeue.run(status, round, nextAttemptAt, nextAttemptAt, before.number);
      }).immediate();
      return this.show(shopId, id);
    },

    async countDead(shopId, since, kind) {
      return kindsOf(kind).reduce((sum, each) => sum + (countDead.get(shopId, each, since)?.n ?? 0), 0);
    },

    async retryDead(shopId, since, now, kind) {
      let retried = 0;
      for (const each of kindsOf(kind)) {
        // Upwards by number, so that what dies again meanwhile is not retried a second time.
        for (let after = 0; ; await new Promise((resolve) => setImmediate(resolve))) {
          const requeued = requeueDead.all({ shopId, since, now, kind: each, after }) as { number: number }[];
          retried += requeued.length;
          if (requeued.length < AT_ONCE) break;
          after = Math.max(after, ...requeued.map(({ number }) => number));
        }
      }
      return retried;
    },

    async queueTest(shop, event, now) {
      return db.transaction(() => outbox.queueTest(shop, event, now)).immediate();
    },

    async prune(before) {
      while (pruneSome.run(before).changes > 0) await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

function kindsOf(kind: DeliveryKind | undefined): readonly DeliveryKind[] {
  return kind === undefined ? DELIVERY_KINDS : [kind];
}
