import { isLastAttempt } from "../../domain/deliveries/delivery.ts";
import type { AttemptResult } from "../port/deliveries.ts";

/** A shop's successful attempts in one transaction. Times in epoch milliseconds. */
export interface SuccessSign {
  shopId: number;
  lastAt: number;
  /** When the last successful attempt to the endpoint began; null if only workflow triggers succeeded. */
  endpointAt: number | null;
}

/** A shop's failures with the same cause in one transaction. */
export interface FailureSign {
  shopId: number;
  cause: "endpoint" | "dead";
  since: number;
  /** Number of deliveries whose first attempt failed (`endpoint`), or that died (`dead`). */
  failures: number;
  lastAt: number;
  host: string | null;
  error: string | null;
}

/**
 * Finds in recorded attempts which endpoints succeed and which fail. A failure before an endpoint's last success gives
 * no `endpoint` sign. All signs are sorted by shop and cause, so that transactions lock alerts in the same order.
 * @param waits see `afterAttempt`
 */
export function healthSigns(recorded: readonly AttemptResult[], waits: readonly number[]) {
  const successes = new Map<number, SuccessSign>();
  for (const { claim, outcome, startedAt } of recorded) {
    if (outcome.error !== null) continue;
    const { shopId, kind } = claim;
    const sign = successes.get(shopId) ?? { shopId, lastAt: startedAt, endpointAt: null };
    successes.set(shopId, sign);
    sign.lastAt = Math.max(sign.lastAt, startedAt);
    if (kind === "webhook") sign.endpointAt = Math.max(sign.endpointAt ?? startedAt, startedAt);
  }
  const failures = new Map<string, FailureSign>();
  for (const result of recorded.filter(({ outcome }) => outcome.error !== null)) {
    const { shopId, round } = result.claim;
    const endpointAt = successes.get(shopId)?.endpointAt ?? null;
    const isNewer = endpointAt === null || result.startedAt > endpointAt;
    if (result.claim.url !== null && result.claim.kind === "webhook" && isNewer) note(failures, result, "endpoint");
    if (isLastAttempt(round, waits)) note(failures, result, "dead");
  }
  const order = (a: FailureSign, b: FailureSign) => a.shopId - b.shopId || (a.cause < b.cause ? -1 : 1);
  return {
    successes: [...successes.values()].sort((a, b) => a.shopId - b.shopId),
    failures: [...failures.values()].sort(order),
  };
}

function note(failures: Map<string, FailureSign>, result: AttemptResult, cause: FailureSign["cause"]): void {
  const { claim, outcome, startedAt } = result;
  const { shopId, kind, url, attempts } = claim;
  const key = `${shopId} ${cause}`;
  const before = failures.get(key);
  const count = cause === "dead" || attempts === 0 ? 1 : 0;
  const isNewest = before === undefined || startedAt >= before.lastAt;
  const isWebhook = kind === "webhook";
  const shown = {
    host: (isWebhook && URL.parse(url ?? "")?.host) || null,
    error: isWebhook ? outcome.error : null,
  };
  failures.set(key, {
    shopId,
    cause,
    since: Math.min(before?.since ?? startedAt, startedAt),
    failures: (before?.failures ?? 0) + count,
    lastAt: Math.max(before?.lastAt ?? startedAt, startedAt),
    ...(isNewest ? shown : { host: before.host, error: before.error }),
  });
}

const STARTS_AGAIN =
  "(alerts.well_at IS NOT NULL OR " +
  "(alerts.cause = 'endpoint' AND NOT alerts.told AND alerts.host <> excluded.host))";

/**
 * SQL that adds a failure (`excluded`) to the alert of its cause. If a success came since the last failure, this
 * failure starts a new alert. If the endpoint's alert was not reported yet, a failure of a different host also starts a
 * new alert.
 */
export const ADD_FAILURE = `ON CONFLICT (shop_id, cause) DO UPDATE SET
  since = CASE WHEN ${STARTS_AGAIN} OR excluded.since < alerts.since THEN excluded.since ELSE alerts.since END,
  failures = CASE WHEN ${STARTS_AGAIN} THEN 0 ELSE alerts.failures END + excluded.failures,
  last_at = excluded.last_at, host = excluded.host, error = excluded.error, well_at = NULL`;
