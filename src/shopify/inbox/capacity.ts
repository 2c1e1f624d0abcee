import { addTo } from "../../lib/slots.ts";
import type { InboxQueue } from "../../store/port/inbox.ts";
import { MAX_FAILURES_IN_A_ROW } from "../api/batches.ts";

/**
 * Maximum number of subjects at once that need the platform: for all shops together, and for one shop. Contracts of a
 * shop that are read at the same time share queries. Shared queries cost fewer points.
 */
const MAX_WITH_PLATFORM = 256;
const MAX_WITH_PLATFORM_PER_SHOP = 32;
/** Maximum for a shop whose platform is slow, or has failed and not answered since. */
const MAX_WITH_PLATFORM_PER_SLOW_SHOP = 1;
/** Maximum number of subjects that do not need the platform. Redactions, for example, take seconds in large shops. */
const MAX_WITHOUT_PLATFORM = 128;
const MAX_WITHOUT_PLATFORM_PER_SHOP = 64;
/**
 * How long a shop rests after the platform failed to serve it. During the rest, no subject of the shop that needs the
 * platform is processed. Each further failure doubles the rest.
 */
const FIRST_REST_MS = 5_000;
const LONGEST_REST_MS = 60_000;
/** Maximum rest of a shop whose connection the platform refuses. */
const LONGEST_REFUSED_REST_MS = 15 * 60_000;

export type InboxCapacity = ReturnType<typeof createInboxCapacity>;

/** Limits how many subjects are processed at once. A shop with a slow platform must not delay other shops. */
export function createInboxCapacity(isSlow: (shopId: number) => boolean, clock: () => number) {
  const withoutPlatform = createCounter();
  const withPlatform = createCounter();
  /** The rests of shops whose platform failed and has not answered since. */
  const rests = new Map<number, { endsAt: number; durationMs: number }>();
  /** For each shop: the number of consecutive subjects for which the platform's answer was incomplete. */
  const incomplete = new Map<number, number>();

  function noteFailure(shopId: number, isRefused = false): void {
    const before = rests.get(shopId);
    const longestMs = isRefused ? LONGEST_REFUSED_REST_MS : LONGEST_REST_MS;
    const durationMs = before === undefined ? FIRST_REST_MS : Math.min(before.durationMs * 2, longestMs);
    rests.set(shopId, { endsAt: clock() + durationMs, durationMs });
  }

  return {
    /** Whether another subject of the queue may start now. */
    allows({ shopId, needsPlatform }: InboxQueue): boolean {
      if (!needsPlatform) {
        const isShopFull = withoutPlatform.of(shopId) >= MAX_WITHOUT_PLATFORM_PER_SHOP;
        return !isShopFull && withoutPlatform.total() < MAX_WITHOUT_PLATFORM;
      }
      const rest = rests.get(shopId);
      if (rest !== undefined && clock() < rest.endsAt) return false;
      const maxOfShop =
        rest !== undefined || isSlow(shopId) ? MAX_WITH_PLATFORM_PER_SLOW_SHOP : MAX_WITH_PLATFORM_PER_SHOP;
      return withPlatform.total() < MAX_WITH_PLATFORM && withPlatform.of(shopId) < maxOfShop;
    },
    /** Counts a subject that starts. @returns a function to call once, when the subject is done */
    start({ shopId, needsPlatform }: InboxQueue): () => void {
      return (needsPlatform ? withPlatform : withoutPlatform).add(shopId);
    },
    /** Notes that the shop's platform answered. */
    noteSuccess(shopId: number): void {
      rests.delete(shopId);
      incomplete.delete(shopId);
    },
    /** Notes an incomplete answer about a subject. Many such subjects in a row count as a failure of the platform. */
    noteIncomplete(shopId: number): void {
      const inARow = (incomplete.get(shopId) ?? 0) + 1;
      incomplete.set(shopId, inARow);
      if (inARow > MAX_FAILURES_IN_A_ROW) noteFailure(shopId);
    },
    /** Notes that the platform failed or refuses the shop. After a pause, the shop has one subject at a time. */
    noteFailure,
  };
}

/** Counts the subjects under way, for each shop and in all shops. */
function createCounter() {
  const byShop = new Map<number, number>();
  let total = 0;
  const count = (shopId: number, difference: number) => {
    total += difference;
    addTo(byShop, shopId, difference);
  };
  return {
    total: () => total,
    of: (shopId: number) => byShop.get(shopId) ?? 0,
    /** Counts a subject. @returns a function that decrements the count */
    add(shopId: number): () => void {
      count(shopId, 1);
      return () => count(shopId, -1);
    },
  };
}
