import { counted } from "./text.ts";

const UTC_DATE = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:Z|\+00:00)$/;

/**
 * Reads an ISO 8601 date in UTC. Digits beyond the millisecond are cut off.
 * @returns epoch milliseconds; undefined for any other form, and for dates that do not exist, such as 30 February
 */
export function parseUtc(text: string): number | undefined {
  const match = UTC_DATE.exec(text);
  if (match === null) return undefined;
  const written = `${match[1]}.${(match[2] ?? "").slice(0, 3).padEnd(3, "0")}Z`;
  const ms = Date.parse(written);
  // Compare the text, because Date.parse turns 30 February into 2 March.
  return !Number.isNaN(ms) && new Date(ms).toISOString() === written ? ms : undefined;
}

/** Formats a date in the only form that the program writes: with milliseconds and a trailing Z. */
export function isoUtc(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoUtcOrNull(ms: number | null): string | null {
  return ms === null ? null : isoUtc(ms);
}

/** Whether a text is a date as `isoUtc` writes it. */
export function isWrittenDate(text: string): boolean {
  const ms = parseUtc(text);
  return ms !== undefined && isoUtc(ms) === text;
}

export const DAY_MS = 86_400_000;

/** Returns when the UTC day of a time starts, in epoch milliseconds. */
export function startOfDay(ms: number): number {
  return ms - (ms % DAY_MS);
}

/** Returns the number of whole UTC days from 1 January 1970 to a time. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Formats a time span in its largest whole unit: "0 s", "12 s", "3 min", "5 h", "2 days". */
export function spanText(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.max(0, Math.floor(ms / SECOND_MS))} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  return counted(Math.floor(ms / DAY_MS), "day", "days");
}

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads `500ms`, `10s`, `2m`, `1h` or `30d`. @returns milliseconds, or undefined for any other form */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  return match === null ? undefined : Number(match[1]) * UNITS[match[2] as keyof typeof UNITS];
}

/**
 * Creates a clock of epoch milliseconds that only goes forward: the wall clock at the start, plus the time that has
 * passed since. Times of two processes can be compared if their wall clocks agreed when the processes started.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createSteadyTime(now: () => number, clock: () => number): () => number {
  const offsetMs = now() - clock();
  // Whole milliseconds, because the time is stored.
  return () => Math.round(offsetMs + clock());
}
