const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

/**
 * How long to wait before the next attempt, in milliseconds: up to 0.5, 1, 2, 4 … 30 seconds, a random part of it, so
 * that many clients do not come back at the same moment. The server's Retry-After comes on top, and is never cut.
 * @param failures how many attempts failed so far, from 1
 * @param retryAfterMs what the server asked for; 0 if it did not
 * @param random from 0 to 1
 */
export function retryWait(failures: number, retryAfterMs: number, random: number): number {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  return retryAfterMs + Math.round(longest * random);
}

/**
 * Reads Retry-After (RFC 9110, 10.2.3): seconds or a date.
 * @param now epoch milliseconds
 * @returns milliseconds; undefined for a missing or malformed header
 */
export function parseRetryAfter(text: string | null, now: number): number | undefined {
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = text.endsWith(" GMT") ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
