import type { Alert } from "../../domain/deliveries/alert.ts";

/**
 * What fails in shops. The transactions that record an attempt, or a trouble of a connection, also keep the alerts.
 */
export interface AlertStore {
  /** Returns what fails now, the most serious first. */
  list(shopId: number): Promise<Alert[]>;
}
