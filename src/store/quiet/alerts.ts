import { ALERT_CAUSES, type Alert, FAILING_ATTEMPTS, FAILING_MS } from "../../domain/deliveries/alert.ts";
import type { AlertStore } from "../port/alerts.ts";
import { type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

/** SQL condition of alerts that people see. An endpoint may fail for a while before. */
const FAILING = sql`well_at IS NULL AND (told OR cause <> 'endpoint'
  OR (failures >= ${FAILING_ATTEMPTS} AND last_at - since >= ${FAILING_MS}))`;

/** SQL condition: a retry by hand may still run. */
const HAS_DEAD = sql`EXISTS (
  SELECT 1 FROM deliveries WHERE deliveries.shop_id = alerts.shop_id AND status = 'dead'
)`;

export function alertStore(db: QuietDatabase): AlertStore {
  return {
    async list(shopId) {
      const alerts = await db.all<Alert>(
        sql`SELECT cause, since, failures, last_at AS "lastAt", host, error FROM alerts
          WHERE shop_id = ${shopId} AND ${FAILING} AND (cause <> 'dead' OR ${HAS_DEAD})`,
      );
      return alerts.sort((a, b) => ALERT_CAUSES.indexOf(a.cause) - ALERT_CAUSES.indexOf(b.cause));
    },
  };
}

/** Keeps the alert of a shop's connection. @param trouble null if the platform accepts the connection */
export function* keepConnectionAlert(shopId: number, trouble: string | null, now: number): TransactionWork<void> {
  if (trouble === null) {
    yield* tx.run(
      sql`UPDATE alerts SET well_at = ${now} WHERE shop_id = ${shopId} AND cause = 'connection' AND well_at IS NULL`,
    );
    return;
  }
  yield* tx.run(
    sql`INSERT INTO alerts (shop_id, cause, since, failures, last_at, error)
      SELECT id, 'connection', ${now}, 1, ${now}, ${trouble} FROM shops
      WHERE id = ${shopId} AND removal_started_at IS NULL
      ON CONFLICT (shop_id, cause) DO UPDATE SET
        since = CASE WHEN alerts.well_at IS NULL THEN alerts.since ELSE excluded.since END,
        last_at = excluded.last_at, error = excluded.error, well_at = NULL`,
  );
}
