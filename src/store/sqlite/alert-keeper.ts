import type { Database } from "bun:sqlite";
import { ADD_FAILURE, healthSigns } from "../engine/health-signs.ts";
import type { AttemptResult } from "../port/deliveries.ts";

/**
 * @returns a function that updates the alerts of shops from recorded attempts, in the caller's transaction. A success
 *   writes nothing if the shop has no alert.
 */
export function alertKeeper(db: Database): (recorded: readonly AttemptResult[], waits: readonly number[]) => void {
  const end = db.prepare(
    `UPDATE alerts SET well_at = $lastAt WHERE shop_id = +$shopId AND well_at IS NULL AND (
       cause = 'endpoint' AND $endpointAt IS NOT NULL
       OR cause = 'dead' AND NOT EXISTS (SELECT 1 FROM deliveries WHERE shop_id = +$shopId AND status = 'dead')
     )`,
  );
  const add = db.prepare(
    `INSERT INTO alerts (shop_id, cause, since, failures, last_at, host, error)
     SELECT id, $cause, $since, $failures, $lastAt, $host, $error FROM shops
     WHERE id = +$shopId AND removal_started_at IS NULL ${ADD_FAILURE}`,
  );
  return (recorded, waits) => {
    const { successes, failures } = healthSigns(recorded, waits);
    for (const each of successes) end.run({ ...each });
    for (const each of failures) add.run({ ...each });
  };
}
