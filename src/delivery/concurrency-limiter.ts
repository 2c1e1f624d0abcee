import { createRotation, type Rotation } from "../lib/rotation.ts";

/** An attempt that takes less time counts as quick. */
const QUICK_MS = 1_000;
/** An endpoint is slow after this many attempts in a row that were not quick. One happens to every endpoint. */
const SLOW_AFTER_ATTEMPTS = 2;

type Pace = "quick" | "untried" | "slow";
/** Slots are given in this order. */
const PACES: readonly Pace[] = ["quick", "untried", "slow"];

export interface ConcurrencyLimiter {
  /** How many slots are free. */
  readonly free: number;
  /**
   * Divides the free slots among shops that have deliveries due. It takes none of them.
   * @param dueShopIds ascending
   * @returns the number of slots by shop; a shop without a slot is missing
   */
  share(dueShopIds: readonly number[]): Map<number, number>;
  /** Takes a slot for one attempt. @returns a function that gives the slot back, to be called once */
  take(shopId: number): (durationMs: number, timedOut: boolean) => void;
}

/**
 * Limits how many attempts run at once: each needs a slot. A shop gets slots by the pace of its endpoint:
 * - quick: up to `perShop` slots for each shop, and up to all slots for the quick shops together;
 * - untried (no attempt so far): one slot for each shop, and a quarter of all slots together;
 * - slow (it hangs, or takes a second or more): one slot for each shop, and half of all slots together.
 *
 * So a quarter of all slots is left for quick endpoints, even if all others hang.
 * @param total slots of all shops together
 * @param perShop slots of one shop
 */
export function createConcurrencyLimiter(total: number, perShop: number): ConcurrencyLimiter {
  const limits: Record<Pace, number> = { quick: total, untried: Math.ceil(total / 4), slow: Math.ceil(total / 2) };
  const limitsPerShop: Record<Pace, number> = { quick: perShop, untried: 1, slow: 1 };
  const taken: Record<Pace, number> = { quick: 0, untried: 0, slow: 0 };
  const takenByShop = new Map<number, number>();
  const rotations: Record<Pace, Rotation> = {
    quick: createRotation(),
    untried: createRotation(),
    slow: createRotation(),
  };
  const paces = createPaces();

  function free(): number {
    return total - taken.quick - taken.untried - taken.slow;
  }

  /** Adds slots to `shares`, one for each shop and round, until there are no more. @returns how many it added */
  function shareInTurn(pace: Pace, shopIds: readonly number[], available: number, shares: Map<number, number>): number {
    let added = 0;
    let round = rotations[pace].order(shopIds, (shopId) => shopId);
    while (round.length > 0 && added < available) {
      round = round.filter((shopId) => {
        const share = shares.get(shopId) ?? 0;
        if (added >= available || (takenByShop.get(shopId) ?? 0) + share >= limitsPerShop[pace]) return false;
        shares.set(shopId, share + 1);
        rotations[pace].noteServed(shopId);
        added += 1;
        return true;
      });
    }
    return added;
  }

  return {
    get free() {
      return free();
    },
    share(dueShopIds) {
      const shares = new Map<number, number>();
      let left = free();
      for (const pace of PACES) {
        const shopIds = dueShopIds.filter((shopId) => paces.of(shopId) === pace);
        left -= shareInTurn(pace, shopIds, Math.min(left, limits[pace] - taken[pace]), shares);
      }
      return shares;
    },
    take(shopId) {
      // The endpoint's pace may change before the slot is given back.
      const pace = paces.of(shopId);
      taken[pace] += 1;
      takenByShop.set(shopId, (takenByShop.get(shopId) ?? 0) + 1);
      return (durationMs, timedOut) => {
        taken[pace] -= 1;
        const left = (takenByShop.get(shopId) ?? 1) - 1;
        if (left === 0) takenByShop.delete(shopId);
        else takenByShop.set(shopId, left);
        paces.note(shopId, durationMs, timedOut);
      };
    },
  };
}

/** Remembers how quick the last attempts of each shop were. */
function createPaces() {
  /** Attempts in a row that were not quick. A shop without an attempt is missing. */
  const slowInARow = new Map<number, number>();
  return {
    of(shopId: number): Pace {
      const slow = slowInARow.get(shopId);
      if (slow === undefined) return "untried";
      return slow >= SLOW_AFTER_ATTEMPTS ? "slow" : "quick";
    },
    note(shopId: number, durationMs: number, timedOut: boolean): void {
      const wasQuick = !timedOut && durationMs < QUICK_MS;
      slowInARow.set(shopId, wasQuick ? 0 : (slowInARow.get(shopId) ?? 0) + 1);
    },
  };
}
