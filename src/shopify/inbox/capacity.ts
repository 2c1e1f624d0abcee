import type { InboxQueue } from "../../store/port/inbox.ts";

/**
 * Limits for subjects that need the platform: for all shops together, and for one shop. The contracts of one shop share
 * queries. So in a backlog, a contract costs fewer points if more contracts are read at once.
 */
const MAX_WITH_PLATFORM = 256;
const MAX_WITH_PLATFORM_PER_SHOP = 32;
/** Limit for one shop whose platform is slow or failed. */
const MAX_WITH_PLATFORM_PER_SLOW_SHOP = 1;
/** Limits for subjects that do not need the platform. A redaction in a large shop takes seconds. */
const MAX_WITHOUT_PLATFORM = 128;
const MAX_WITHOUT_PLATFORM_PER_SHOP = 64;
/** How long a shop whose platform failed has to wait. Each further failure doubles the wait. */
const FIRST_REST_MS = 5_000;
const LONGEST_REST_MS = 60_000;

export type InboxCapacity = ReturnType<typeof createInboxCapacity>;

/** Limits how many subjects are processed at once: a shop whose platform is slow or down must not delay others. */
export function createInboxCapacity(isSlow: (shopId: number) => boolean, clock: () => number) {
  const withoutPlatform = createCounter();
  const withPlatform = createCounter();
  /** Shops whose platform failed and has not answered since. */
  const rests = new Map<number, { endsAt: number; durationMs: number }>();

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
    /** Counts a subject that starts. @returns a function to call at its end, once */
    start({ shopId, needsPlatform }: InboxQueue): () => void {
      return (needsPlatform ? withPlatform : withoutPlatform).add(shopId);
    },
    /** Notes that the shop's platform answered. */
    noteSuccess(shopId: number): void {
      rests.delete(shopId);
    },
    /** Notes that the platform failed. After a rest, the shop gets one subject at a time until an answer. */
    noteFailure(shopId: number): void {
      const before = rests.get(shopId);
      const durationMs = before === undefined ? FIRST_REST_MS : Math.min(before.durationMs * 2, LONGEST_REST_MS);
      rests.set(shopId, { endsAt: clock() + durationMs, durationMs });
    },
  };
}

/** Counts the subjects under way, for each shop and in all shops. */
function createCounter() {
  const byShop = new Map<number, number>();
  let total = 0;
  return {
    total: () => total,
    of: (shopId: number) => byShop.get(shopId) ?? 0,
    /** @returns a function that decrements the count */
    add(shopId: number): () => void {
      total += 1;
      byShop.set(shopId, (byShop.get(shopId) ?? 0) + 1);
      return () => {
        total -= 1;
        const left = (byShop.get(shopId) ?? 1) - 1;
        if (left === 0) byShop.delete(shopId);
        else byShop.set(shopId, left);
      };
    },
  };
}
