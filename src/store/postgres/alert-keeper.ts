import { ADD_FAILURE, healthSigns } from "../engine/health-signs.ts";
import type { AttemptResult } from "../port/deliveries.ts";
import { columnArrays, type Queries } from "./database.ts";

/** Updates the alerts of shops from recorded attempts. A success writes nothing if the shop has no alert. */
export async function keepAlerts(
  tx: Queries,
  recorded: readonly AttemptResult[],
  waits: readonly number[],
): Promise<void> {
  const { successes, failures } = healthSigns(recorded, waits);
  const ended =
    successes.length > 0 &&
    tx.run(
      `UPDATE alerts SET well_at = signs.last_at
       FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS signs (shop_id, last_at, endpoint_at)
       WHERE alerts.shop_id = signs.shop_id AND alerts.well_at IS NULL AND (
         alerts.cause = 'endpoint' AND signs.endpoint_at IS NOT NULL
         OR alerts.cause = 'dead' AND NOT EXISTS (
           SELECT 1 FROM deliveries WHERE deliveries.shop_id = alerts.shop_id AND status = 'dead'
         )
       )`,
      columnArrays(successes, ({ shopId, lastAt, endpointAt }) => [shopId, lastAt, endpointAt]),
    );
  const added =
    failures.length > 0 &&
    tx.run(
      `INSERT INTO alerts (shop_id, cause, since, failures, last_at, host, error)
       SELECT signs.* FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[],
         $7::text[]) AS signs (shop_id, cause, since, failures, last_at, host, error)
       JOIN (SELECT id FROM shops WHERE id = ANY($1::bigint[]) AND removal_started_at IS NULL ORDER BY id FOR KEY SHARE)
         AS served ON served.id = signs.shop_id
       ORDER BY signs.shop_id, signs.cause ${ADD_FAILURE}`,
      columnArrays(failures, ({ shopId, cause, since, failures: count, lastAt, host, error }) => [
        ...[shopId, cause, since],
        ...[count, lastAt, host, error],
      ]),
    );
  await Promise.all([ended, added]);
}
