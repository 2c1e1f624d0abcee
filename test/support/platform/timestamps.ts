const HOURS_5 = 5 * 3_600_000;

/** GraphQL writes times in UTC. */
export function utc(time: number): string;
export function utc(time: number | null): string | null;
export function utc(time: number | null): string | null {
  return time === null ? null : `${new Date(time).toISOString().slice(0, -5)}Z`;
}

/** Webhooks write them in the shop's zone. */
export function zoned(time: number): string;
export function zoned(time: number | null): string | null;
export function zoned(time: number | null): string | null {
  return time === null ? null : `${new Date(time - HOURS_5).toISOString().slice(0, -5)}-05:00`;
}
