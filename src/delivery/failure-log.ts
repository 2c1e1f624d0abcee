import { isLastAttempt } from "../domain/deliveries/delivery.ts";
import type { Log } from "../lib/log.ts";
import type { AttemptResult } from "../store/port/deliveries.ts";

/**
 * Returns a function that logs what an operator should know of a recorded attempt: that an endpoint, or a shop's
 * workflow triggers, began to fail or answer again, and that a delivery is dead. An endpoint that goes on failing is
 * logged once, and a new URL of it that fails too is logged again. The URL's path and query are not logged, because
 * some hold secrets.
 * @param waits see `afterAttempt`
 */
export function createFailureLog(log: Log, waits: readonly number[]): (result: AttemptResult) => void {
  /** The URL (null for workflow triggers) by shop and kind, where the last attempt failed. */
  const failing = new Map<string, string | null>();

  return ({ claim, outcome }) => {
    const { shopId, kind, domain, topic, round, id } = claim;
    const key = `${shopId} ${kind}`;
    const [what, url] = kind === "webhook" ? ["endpoint", claim.url] : ["workflow trigger", null];
    const fields = { shop: domain, topic, host: URL.parse(url ?? "")?.host };
    if (outcome.error === null) {
      if (failing.delete(key)) log.info(`the ${what} answers again`, fields);
      return;
    }
    if (failing.get(key) !== url) log.warn(`the ${what} fails`, { ...fields, error: outcome.error });
    failing.set(key, url);
    if (isLastAttempt(round, waits))
      log.warn("a delivery is dead: its last attempt failed", { ...fields, delivery: id, error: outcome.error });
  };
}
