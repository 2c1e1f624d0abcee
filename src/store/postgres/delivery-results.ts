import { afterAttempt } from "../../domain/deliveries/delivery.ts";
import { DAY_MS } from "../../lib/time.ts";
import type { AttemptResult, EndpointPace } from "../port/deliveries.ts";
import { columnArrays, type Queries } from "./database.ts";

/** Records and counts ended attempts if this process still has their lease. @returns the recorded attempts */
export async function recordResults(
  tx: Queries,
  results: readonly AttemptResult[],
  waits: readonly number[],
): Promise<AttemptResult[]> {
  if (results.length === 0) return [];
  // Sorts in the lock order of redactions, to avoid deadlocks. The server may still choose another order. Then a
  // deadlock is possible, and the transaction is retried.
  const ended = results.toSorted((a, b) => a.claim.shopId - b.claim.shopId || a.claim.number - b.claim.number);
  // While a process has the lease, the delivery does not change, so the claim is still correct.
  const columns = columnArrays(ended, ({ claim, outcome, startedAt, duration }) => {
    const { status, attempts, round, nextAttemptAt } = afterAttempt(claim, outcome, startedAt, waits);
    const endedAt = nextAttemptAt === null ? startedAt + duration : null;
    const after = [status, attempts, round, nextAttemptAt, outcome.statusCode, outcome.error, endedAt];
    return [claim.shopId, claim.number, claim.lease, ...after, startedAt, duration, outcome.url ?? null];
  });
  const recorded = await tx.all<{ place: number }>(
    `WITH ended AS (
       SELECT * FROM ROWS FROM (unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[],
         $7::bigint[], $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[]),
         json_array_elements_text($14::text::json)) WITH ORDINALITY
       AS ended (shop_id, number, lease, status, attempts, round, next_attempt_at, status_code, error, ended_at,
         started_at, duration, url, answer, place)
     ), recorded AS (
       UPDATE deliveries SET status = ended.status, attempts = ended.attempts, round = ended.round,
         next_attempt_at = ended.next_attempt_at, claimable_at = ended.next_attempt_at, lease = NULL,
         last_status_code = ended.status_code, error = ended.error, ended_at = ended.ended_at
       FROM ended
       WHERE deliveries.shop_id = ended.shop_id AND deliveries.number = ended.number AND deliveries.lease = ended.lease
       RETURNING ended.*, redacted, kind
     ), added AS (
       INSERT INTO attempts (shop_id, delivery, number, started_at, duration, status_code, error, url, answer)
       SELECT shop_id, number, attempts, started_at, duration, status_code, error, url,
         CASE WHEN NOT redacted THEN answer END
       FROM recorded
     ), counted AS (
       INSERT INTO delivery_counts (shop_id, kind, day, outcome, attempts, last_at)
       SELECT shop_id, kind, started_at - started_at % ${DAY_MS}, replace(status, 'retrying', 'retried'), count(*),
         max(started_at)
       FROM recorded GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
       ON CONFLICT (shop_id, kind, day, outcome) DO UPDATE SET
         attempts = delivery_counts.attempts + excluded.attempts,
         last_at = greatest(delivery_counts.last_at, excluded.last_at)
     )
     SELECT place::float8 AS place FROM recorded`,
    [
      ...columns,
      // Passes the answers as JSON, because the driver quotes long texts in an array character by character.
      JSON.stringify(ended.map(({ outcome }) => outcome.answer ?? null)),
    ],
  );
  const kept = new Set(recorded.map(({ place }) => ended[place - 1]));
  return results.filter((result) => kept.has(result));
}

/** Stores the paces of endpoints. Skips an endpoint whose URL has changed since the attempt. */
export async function keepPaces(tx: Queries, recorded: readonly AttemptResult[]): Promise<void> {
  const paces = new Map<string, EndpointPace>();
  for (const { claim, pace } of recorded) {
    if (pace === undefined || claim.url === null) continue;
    const { shopId, url } = claim;
    const key = `${shopId} ${url}`;
    // If the attempt did not time out, the time of the previous timeout is kept.
    paces.set(key, { shopId, url, pace: pace.pace, timedOutAt: pace.timedOutAt ?? paces.get(key)?.timedOutAt ?? null });
  }
  if (paces.size === 0) return;
  await tx.run(
    `UPDATE webhook_endpoints
     SET pace = known.pace, timed_out_at = coalesce(known.timed_out_at, webhook_endpoints.timed_out_at)
     FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS known (shop_id, url, pace, timed_out_at)
     WHERE webhook_endpoints.shop_id = known.shop_id AND webhook_endpoints.url = known.url
       AND (webhook_endpoints.pace IS DISTINCT FROM known.pace OR known.timed_out_at IS NOT NULL)`,
    columnArrays([...paces.values()], ({ shopId, url, pace, timedOutAt }) => [shopId, url, pace, timedOutAt]),
  );
}
