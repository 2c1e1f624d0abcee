/** A platform that takes longer than this for one request is slow. */
const SLOW_MS = 5_000;

/** How long the platform takes for the requests of each shop, without the waits before them. */
export interface ResponseTimes {
  /** Notes how long a request took, whether it was answered or not. */
  note(shopId: number, durationMs: number): void;
  /** Whether the shop's last request was slow. */
  isSlow(shopId: number): boolean;
}

export function createResponseTimes(): ResponseTimes {
  const slowShops = new Set<number>();
  return {
    note(shopId, durationMs) {
      if (durationMs > SLOW_MS) slowShops.add(shopId);
      else slowShops.delete(shopId);
    },
    isSlow: (shopId) => slowShops.has(shopId),
  };
}
