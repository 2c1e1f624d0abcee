import type { Database } from "bun:sqlite";
import { afterAttempt } from "../../domain/deliveries/delivery.ts";
import { type AttemptResult, changeableBody } from "../port/deliveries.ts";

/** @returns a function that records an attempt in the caller's transaction; false if another process has the lease */
export function resultRecorder(db: Database): (result: AttemptResult, waits: readonly number[]) => boolean {
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
       iif($sentBody IS NULL OR body = $sentBody, $answer, NULL)
     FROM deliveries WHERE shop_id = +$shopId AND number = +$number`,
  );

  return (result, waits) => {
    const { claim, outcome, startedAt, duration, pace } = result;
    const { shopId, number, lease } = claim;
    // The lease keeps the delivery as it was claimed.
    const { status, attempts, round, nextAttemptAt } = afterAttempt(claim, outcome, startedAt, waits);
    const { statusCode, error, url = null, answer = null } = outcome;
    const endedAt = nextAttemptAt === null ? startedAt + duration : null;
    const after = [status, attempts, round, nextAttemptAt, nextAttemptAt, statusCode, error, endedAt];
    if (update.run(...after, shopId, number, lease).changes === 0) return false;
    addAttempt.run({ startedAt, duration, url, sentBody: changeableBody(result), answer, shopId, number });
    if (pace !== undefined) setPace.run({ ...pace, shopId, url: claim.url });
    return true;
  };
}
