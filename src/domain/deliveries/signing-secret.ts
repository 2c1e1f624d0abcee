import { parseDuration } from "../../lib/time.ts";
import { SdsError } from "../error.ts";

const MIN_OVERLAP_MS = 1_000;
const MAX_OVERLAP_MS = 30 * 86_400_000;

/** A shop's newest signing secret. */
export interface NewestSecret {
  /** null without a secret. The former version is `version` - 1. */
  version: number | null;
  /** Until this time the former version signs too, epoch milliseconds; null without an overlap. */
  overlapEndsAt: number | null;
}

/** Returns the versions that sign `webhook-signature` now, newest first (docs/webhooks.md, "Rotation"). */
export function signingVersions({ version, overlapEndsAt }: NewestSecret, now: number): number[] {
  if (version === null) return [];
  return overlapEndsAt !== null && now < overlapEndsAt ? [version, version - 1] : [version];
}

/** Reads an overlap like `24h`. @returns milliseconds @throws SdsError `invalid` */
export function parseOverlap(text: string): number {
  const overlapMs = parseDuration(text);
  if (overlapMs !== undefined && overlapMs >= MIN_OVERLAP_MS && overlapMs <= MAX_OVERLAP_MS) return overlapMs;
  throw new SdsError("invalid", `the overlap is "${text}": it must be a duration from 1s to 30d, like 24h`);
}
