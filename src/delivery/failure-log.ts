import { isLastAttempt } from "../domain/delivery.ts";
import type { Log } from "../log.ts";
import type { AttemptResult } from "../store/deliveries.ts";

/**
 * Returns a function that logs what an operator should know of a recorded attempt: that an endpoint, or a shop's
 * workflow triggers, began to fail or answer again, and that a delivery is dead. An endpoint that goes on failing is
 * logged once. The URL's path and query are not logged, because some hold secrets.
 * @param waits see `afterAttempt`
 */
export function createFailureLog(log: Log, waits: readonly number[]): (result: AttemptResult) => void {
  /** Shop and kind whose last attempt failed. */
  const failing = new Set<string>();

  return ({ claim, outcome }) => {
    const { shopId, kind, domain, topic, url, round, id } = claim;
    const key = `${shopId} ${kind}`;
    const [what, host] =
      kind === "webhook" ? ["endpoint", URL.parse(url ?? "")?.host] : ["workflow trigger", undefined];
    const fields = { shop: domain, topic, host };
    if (outcome.error === null) {
      if (failing.delete(key)) log.info(`the ${what} answers again`, fields);
      return;
    }
    if (!failing.has(key)) log.warn(`the ${what} fails`, { ...fields, error: outcome.error });
    failing.add(key);
    if (isLastAttempt(round, waits))
      log.warn("a delivery is dead: its last attempt failed", { ...fields, delivery: id, error: outcome.error });
  };
}
