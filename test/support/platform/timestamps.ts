/** @throws if the text is not a date */
export function readDate(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new Error(`${text} is not a date`);
  return time;
}

const OFFSET_MS = 5 * 3_600_000;

/** Writes a time as GraphQL does, in UTC. */
export function utc(time: number): string;
export function utc(time: number | null): string | null;
export function utc(time: number | null): string | null {
  return time === null ? null : `${new Date(time).toISOString().slice(0, -5)}Z`;
}

/** Writes a time as webhooks do, in the time zone of the shop. */
export function zoned(time: number): string;
export function zoned(time: number | null): string | null;
export function zoned(time: number | null): string | null {
  return time === null ? null : `${new Date(time - OFFSET_MS).toISOString().slice(0, -5)}-05:00`;
}
