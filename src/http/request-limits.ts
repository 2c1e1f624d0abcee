import type { RateLimit } from "../config.ts";

/**
 * Limits how many requests each caller makes. In the API, a caller is an API key (docs/api.md, "Limits"). On the
 * settings page, a caller is a shop. Each node counts only its own requests.
 */
export interface RequestLimits {
  /**
   * Counts a request.
   * @returns `headers` tell the limit (draft-ietf-httpapi-ratelimit-headers). A request above the limit also gets
   *   `retryAfterS`, the seconds until the next request is allowed
   */
  count(caller: string): { headers: Record<string, string>; retryAfterS?: number };
}

interface Bucket {
  /** Number of requests that the caller could still make at the time `at`. */
  left: number;
  /** The time of the caller's last request, by `clock`. */
  at: number;
}

/** @param limit null for unlimited requests @param clock milliseconds of a clock that only goes forward */
export function createRequestLimits(limit: RateLimit | null, clock: () => number): RequestLimits {
  if (limit === null) return { count: () => ({ headers: {} }) };
  const { perSecond, burst } = limit;
  const windowS = Math.max(1, Math.ceil(burst / perSecond));
  const policy = `"default";q=${burst};w=${windowS}`;
  const buckets = new Map<string, Bucket>();

  return {
    count(caller) {
      const now = clock();
      const { left, at } = buckets.get(caller) ?? { left: burst, at: now };
      const filled = Math.min(burst, left + ((now - at) / 1_000) * perSecond);
      const isAllowed = filled >= 1;
      const rest = isAllowed ? filled - 1 : filled;
      buckets.set(caller, { left: rest, at: now });
      const fullAfterS = Math.ceil((burst - rest) / perSecond);
      const headers = {
        "RateLimit-Policy": policy,
        RateLimit: `"default";r=${Math.floor(rest)};t=${fullAfterS}`,
      };
      return isAllowed ? { headers } : { headers, retryAfterS: Math.max(1, Math.ceil((1 - rest) / perSecond)) };
    },
  };
}
