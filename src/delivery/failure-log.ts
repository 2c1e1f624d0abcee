import { isLastAttempt } from "../domain/deliveries/delivery.ts";
import type { Log } from "../lib/log.ts";
import type { AttemptResult } from "../store/port/deliveries.ts";

/** Minimum time between two log entries about the dead deliveries of a shop. */
const INTERVAL_MS = 60_000;

/** Log fields of a failed delivery. */
interface FailureFields {
  shop: string;
  topic: string;
  host: string | undefined;
  error: string | null;
}

/** Number of a shop's dead deliveries that were not logged yet. `fields` describes the last of these deliveries. */
interface DeadSum {
  deliveries: number;
  fields: FailureFields | undefined;
  loggedAt: number;
}

/** Logs failing endpoints and dead deliveries. */
export interface FailureLog {
  note(result: AttemptResult): void;
  /** Logs the sum of each shop whose last log entry is at least a minute old. Called in each turn. */
  report(): void;
  /** Logs all sums of dead deliveries. */
  reportAll(): void;
}

/**
 * Creates a log of failures. It writes one entry when deliveries to a URL begin to fail, and another entry when they
 * succeed again. A shop's workflow triggers get such entries too. The log shows only the host of a URL, because some
 * paths and queries contain secrets. Dead deliveries are summed up by shop.
 * @param waits see `afterAttempt`
 * @param clock milliseconds of a clock that only goes forward
 */
export function createFailureLog(log: Log, waits: readonly number[], clock: () => number): FailureLog {
  /** The URL whose last attempt failed, by shop and kind; null for workflow triggers. */
  const failing = new Map<string, string | null>();
  /** By shop id. */
  const sums = new Map<number, DeadSum>();

  function report(isDue: (sum: DeadSum) => boolean): void {
    for (const [shopId, sum] of sums) {
      if (!isDue(sum)) continue;
      const { deliveries, fields } = sum;
      if (deliveries === 0) sums.delete(shopId);
      else {
        log.warn("deliveries are dead: their last attempt failed", { deliveries, ...fields });
        Object.assign(sum, { deliveries: 0, loggedAt: clock() });
      }
    }
  }

  function noteDead(shopId: number, fields: FailureFields): void {
    const sum = sums.get(shopId) ?? { deliveries: 0, fields, loggedAt: Number.NEGATIVE_INFINITY };
    sums.set(shopId, Object.assign(sum, { deliveries: sum.deliveries + 1, fields }));
  }

  return {
    note({ claim, outcome: { error } }) {
      const { shopId, kind, domain, topic, round } = claim;
      const key = `${shopId} ${kind}`;
      const [what, url] = kind === "webhook" ? ["endpoint", claim.url] : ["workflow trigger", null];
      const where = { shop: domain, topic, host: URL.parse(url ?? "")?.host };
      if (error === null) {
        if (failing.delete(key)) log.info(`the ${what} answers again`, where);
        return;
      }
      if (failing.get(key) !== url) log.warn(`the ${what} fails`, { ...where, error });
      failing.set(key, url);
      if (isLastAttempt(round, waits)) noteDead(shopId, { ...where, error });
    },
    report: () => report(({ loggedAt }) => clock() - loggedAt >= INTERVAL_MS),
    reportAll: () => report(() => true),
  };
}
