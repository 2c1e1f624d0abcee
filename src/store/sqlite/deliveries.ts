import type { Database } from "bun:sqlite";
import { afterAttempt, type CountedOutcome, type NewestSecret, outcomeOf } from "../../domain/deliveries/delivery.ts";
import { randomId } from "../../domain/ids.ts";
import { startOfDay } from "../../lib/time.ts";
import { nextTurn } from "../../lib/waits.ts";
import { createDueFinder } from "../engine/due-finder.ts";
import type { AttemptResult, Claim, DeliveryQueue, EndpointPace, QueueClaim, SendQueue } from "../port/deliveries.ts";
import { alertKeeper } from "./alert-keeper.ts";

/** Maximum number of rows per transaction of `bringForward`. A low number keeps waits of other operations short. */
const ROWS_PER_STEP = 200;

/** A queue, and when its first delivery is due. Epoch milliseconds. */
type PlannedQueue = SendQueue & { at: number };

/** Position of a delivery in its queue's plan. */
type DuePosition = { at: number; number: number };

export function deliveryQueue(db: Database, random: (bytes: number) => Uint8Array): DeliveryQueue {
  const record = resultRecorder(db);
  const addCounts = countAdder(db);
  const keepAlerts = alertKeeper(db);
  const claim = deliveryClaimer(db, random);
  const bringSomeForward = forwardBringer(db);
  const { plannedQueues, dueQueues } = queueFinder(db);
  const allPaces = db.prepare<EndpointPace, []>(
    `SELECT shop_id AS shopId, url, pace, timed_out_at AS timedOutAt FROM webhook_endpoints
     WHERE pace IS NOT NULL AND url IS NOT NULL`,
  );
  const removing = db.prepare<{ id: number }, []>("SELECT id FROM shops WHERE removal_started_at IS NOT NULL");

  return {
    async dueQueues(now) {
      const removed = new Set(removing.all().map(({ id }) => id));
      return (await dueQueues(now)).flatMap(({ shopId, kind }) => (removed.has(shopId) ? [] : [{ shopId, kind }]));
    },

    async listPaces() {
      return allPaces.all();
    },

    async bringForward(latest, now) {
      let brought = 0;
      for (const queue of plannedQueues()) {
        let last: DuePosition | undefined = { at: now, number: Number.MAX_SAFE_INTEGER };
        while (last !== undefined) {
          const step = bringSomeForward(queue, last, latest, now);
          brought += step.brought;
          last = step.last;
          if (last !== undefined) await nextTurn();
        }
      }
      return brought;
    },

    async recordAndClaim(ended, claims, now, leaseUntil, waits) {
      return db
        .transaction(() => {
          const counts: OutcomeCounts = new Map();
          const recorded = ended.filter((each) => record(each, waits, counts));
          addCounts(counts);
          keepAlerts(recorded, waits);
          const claimed = claims.flatMap((each) => claim(each, now, leaseUntil));
          return { recorded, claimed };
        })
        .immediate();
    },
  };
}

/** Makes searches for the queues with planned deliveries, and for the queues with due deliveries. */
function queueFinder(db: Database) {
  // Each of the next two queries finds a queue with one index seek, whatever the number of due deliveries. With
  // `(shop_id, kind) > (?, ?)`, SQLite would read all deliveries of a queue.
  const queueOfLaterShop = db.prepare<PlannedQueue, [number]>(
    `SELECT shop_id AS shopId, kind, claimable_at AS at FROM deliveries INDEXED BY deliveries_due
     WHERE claimable_at IS NOT NULL AND shop_id > ? ORDER BY shop_id, kind, claimable_at LIMIT 1`,
  );
  const laterQueueOfShop = db.prepare<PlannedQueue, [number, string]>(
    `SELECT shop_id AS shopId, kind, claimable_at AS at FROM deliveries INDEXED BY deliveries_due
     WHERE claimable_at IS NOT NULL AND shop_id = +? AND kind > ? ORDER BY kind, claimable_at LIMIT 1`,
  );
  function* plannedQueues() {
    let next = queueOfLaterShop.get(0);
    while (next !== null) {
      yield next;
      next = laterQueueOfShop.get(next.shopId, next.kind) ?? queueOfLaterShop.get(next.shopId);
    }
  }
  const firstDue = db.prepare<SendQueue & { rows: number }, [number, number]>(
    `SELECT shop_id AS shopId, kind, count(*) AS rows FROM (
       SELECT shop_id, kind FROM deliveries INDEXED BY deliveries_planned
       WHERE claimable_at IS NOT NULL AND claimable_at <= ? ORDER BY claimable_at LIMIT +?
     ) GROUP BY shop_id, kind ORDER BY shop_id, kind`,
  );
  const finder = createDueFinder();

  function dueQueues(now: number): Promise<SendQueue[]> {
    return finder.find<SendQueue>({
      byTime(limit) {
        const queues = firstDue.all(now, limit);
        return { queues, isComplete: queues.reduce((sum, { rows }) => sum + rows, 0) < limit };
      },
      byQueue(limit) {
        const planned = [...plannedQueues().take(limit ?? Number.POSITIVE_INFINITY)];
        return { queues: planned.filter(({ at }) => at <= now), isComplete: planned.length !== limit };
      },
    });
  }
  return { plannedQueues, dueQueues };
}

/**
 * @returns a function that runs one step of `bringForward` in its own transaction. That function returns the position
 *   `last`, after which the next step begins. After the last step, `last` is undefined.
 */
function forwardBringer(db: Database) {
  // `isNew`: no process has claimed the delivery since it was last queued or manually retried.
  const plannedAfter = db.prepare<DuePosition & { isNew: number }, DuePosition & { shopId: number; kind: string }>(
    `SELECT number, claimable_at AS at, status = 'pending' AND lease IS NULL AS isNew
     FROM deliveries INDEXED BY deliveries_due
     WHERE claimable_at IS NOT NULL AND shop_id = +$shopId AND kind = +$kind AND (claimable_at, number) > ($at, $number)
     ORDER BY claimable_at, number LIMIT ${ROWS_PER_STEP}`,
  );
  const makeDue = db.prepare(
    `UPDATE deliveries SET next_attempt_at = min(next_attempt_at, $now), claimable_at = $now
     WHERE shop_id = $shopId AND number = $number`,
  );
  return ({ shopId, kind }: SendQueue, after: DuePosition, latest: number, now: number) =>
    db
      .transaction(() => {
        const planned = plannedAfter.all({ shopId, kind, at: after.at, number: after.number });
        const early = planned.filter((each) => each.at > latest || each.isNew === 1);
        for (const { number } of early) makeDue.run({ shopId, number, now });
        return { brought: early.length, last: planned[ROWS_PER_STEP - 1] };
      })
      .immediate();
}

/** A claimed delivery, without the values that all claims of a queue share. */
type ClaimedRow = Omit<Claim, "url" | "domain" | "newestSecret" | "test"> & { test: number };

/** @returns a function that claims due deliveries of a queue in the caller's transaction */
function deliveryClaimer(
  db: Database,
  random: (bytes: number) => Uint8Array,
): (claim: QueueClaim, now: number, leaseUntil: number) => Claim[] {
  const claim = db.prepare<ClaimedRow, [string, number, number, string, number, number]>(
    `UPDATE deliveries SET lease = ?, claimable_at = ? WHERE number IN (
       SELECT number FROM deliveries INDEXED BY deliveries_due
       WHERE shop_id = +? AND kind = +? AND claimable_at <= ? ORDER BY claimable_at, number LIMIT +?
     ) RETURNING id, number, kind, shop_id AS shopId, body, topic, test, secret_version AS secretVersion, attempts,
       round, lease`,
  );
  const endpointOf = db.prepare<{ domain: string; url: string | null } & NewestSecret, [number]>(
    `SELECT domain, url, version, overlap_ends_at AS overlapEndsAt FROM shops
     LEFT JOIN webhook_endpoints ON webhook_endpoints.shop_id = shops.id
     LEFT JOIN webhook_secrets ON webhook_secrets.shop_id = shops.id
       AND version = (SELECT max(version) FROM webhook_secrets WHERE shop_id = shops.id)
     WHERE shops.id = +? AND removal_started_at IS NULL`,
  );

  return ({ shopId, kind, count }, now, leaseUntil) => {
    const endpoint = endpointOf.get(shopId);
    if (endpoint === null) return [];
    const { domain, url, version, overlapEndsAt } = endpoint;
    const newestSecret = { version, overlapEndsAt };
    return claim
      .all(randomId("", random), leaseUntil, shopId, kind, now, count)
      .map((claimed) => ({ ...claimed, test: claimed.test === 1, domain, url, newestSecret }));
  };
}

/** Number of attempts of one queue, day and outcome that one transaction records. */
interface OutcomeCount extends SendQueue {
  day: number;
  outcome: CountedOutcome;
  attempts: number;
  lastAt: number;
}

/** Counts of attempts. The key consists of queue, day and outcome. */
type OutcomeCounts = Map<string, OutcomeCount>;

function countOutcome(counts: OutcomeCounts, { shopId, kind }: SendQueue, outcome: CountedOutcome, at: number): void {
  const day = startOfDay(at);
  const key = `${shopId} ${kind} ${day} ${outcome}`;
  const counted = counts.get(key);
  if (counted === undefined) counts.set(key, { shopId, kind, day, outcome, attempts: 1, lastAt: at });
  else {
    counted.attempts += 1;
    counted.lastAt = Math.max(counted.lastAt, at);
  }
}

/** @returns a function that adds counts to the stored counts, in the caller's transaction */
function countAdder(db: Database): (counts: OutcomeCounts) => void {
  const add = db.prepare(
    `INSERT INTO delivery_counts (shop_id, kind, day, outcome, attempts, last_at) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (shop_id, kind, day, outcome)
     DO UPDATE SET attempts = attempts + excluded.attempts, last_at = max(last_at, excluded.last_at)`,
  );
  return (counts) => {
    for (const { shopId, kind, day, outcome, attempts, lastAt } of counts.values())
      add.run(shopId, kind, day, outcome, attempts, lastAt);
  };
}

/**
 * @returns a function that records and counts an attempt in the caller's transaction. It returns false if another
 *   process has the lease.
 */
function resultRecorder(
  db: Database,
): (result: AttemptResult, waits: readonly number[], counts: OutcomeCounts) => boolean {
  const setPace = db.prepare(
    `UPDATE webhook_endpoints SET pace = $pace, timed_out_at = coalesce($timedOutAt, timed_out_at)
     WHERE shop_id = $shopId AND url = $url AND (pace IS NOT $pace OR $timedOutAt IS NOT NULL)`,
  );
  const update = db.prepare(
    `UPDATE deliveries SET status = ?, attempts = ?, round = ?, next_attempt_at = ?, claimable_at = ?, lease = NULL,
       last_status_code = ?, error = ?, ended_at = ? WHERE shop_id = ? AND number = ? AND lease = ?`,
  );
  const addAttempt = db.prepare(
    `INSERT INTO attempts (shop_id, delivery, number, started_at, duration, status_code, error, url, answer)
     SELECT shop_id, number, attempts, $startedAt, $duration, last_status_code, error, $url,
       iif(redacted, NULL, $answer)
     FROM deliveries WHERE shop_id = +$shopId AND number = +$number`,
  );

  return (result, waits, counts) => {
    const { claim, outcome, startedAt, duration, pace } = result;
    const { shopId, number, lease } = claim;
    // While a process has the lease, the delivery does not change, so the claim is still correct.
    const { status, attempts, round, nextAttemptAt } = afterAttempt(claim, outcome, startedAt, waits);
    const { statusCode, error, url = null, answer = null } = outcome;
    const endedAt = nextAttemptAt === null ? startedAt + duration : null;
    const after = [status, attempts, round, nextAttemptAt, nextAttemptAt, statusCode, error, endedAt];
    if (update.run(...after, shopId, number, lease).changes === 0) return false;
    addAttempt.run({ startedAt, duration, url, answer, shopId, number });
    countOutcome(counts, claim, outcomeOf(status), startedAt);
    if (pace !== undefined) setPace.run({ ...pace, shopId, url: claim.url });
    return true;
  };
}
