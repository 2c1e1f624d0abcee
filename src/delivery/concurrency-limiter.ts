import type { DeliveryKind, Pace } from "../domain/deliveries/delivery.ts";
import { createRotation, type Rotation } from "../lib/slots.ts";
import type { DueShop } from "../store/port/deliveries.ts";
import { createPaces, type Ending, type Paces, QUICK_MS } from "./paces.ts";

type SlotPace = ReturnType<Paces["of"]>;

export interface ConcurrencyLimiter {
  /** How many slots are free. */
  readonly free: number;
  /** Whether the last share left shops for the next one, so that nobody waits long for many attempts that begin. */
  readonly heldBack: boolean;
  /**
   * Divides the free slots among shops that have deliveries due. It takes none of them.
   * @param due by ascending id
   * @returns the number of slots by shop; a shop without a slot is missing
   */
  share(due: readonly DueShop[]): Map<number, number>;
  /** The most slots that a shop may have at its pace now, in all processes together. */
  limitOf(due: DueShop): number;
  /**
   * Takes a slot for one attempt.
   * @param url the endpoint; null for a workflow trigger
   * @returns a function that gives the slot back, to be called once. Without an ending, the attempt tells nothing of
   *   the endpoint. It returns what `Paces.note` returns.
   */
  take(shopId: number, kind: DeliveryKind, url: string | null): (ending?: Ending) => Pace | undefined;
  /** See `Paces.restore`. */
  restore(shopId: number, url: string, pace: Pace, timeoutAgeMs: number): void;
}

/** Attempts of untried and slow endpoints that begin together, and so may end together. */
const BEGIN_TOGETHER = 32;

interface Running {
  shopId: number;
  kind: DeliveryKind;
  /** What its slot counts for. */
  pace: SlotPace;
  beganMs: number;
}

/**
 * Limits how many attempts run at once: each needs a slot. A shop gets slots by the pace of its endpoint, in this
 * order:
 * - quick: one slot for each shop without an attempt under way;
 * - untried (no attempt so far): one slot for each shop;
 * - quick: up to `perShop` slots for each shop;
 * - slow (it hangs, takes a second or more, or timed out in the last minutes): one slot for each shop, and half of all
 *   slots together.
 *
 * A quarter of all slots is only for the first two kinds, and half of that only for the first kind: endpoints that were
 * quick may begin to hang all together, and so may untried ones. An attempt that runs for a second counts as slow from
 * then on, and its shop gets no other slot for that kind of delivery until it ends. Where a text says "endpoint", the
 * same holds for a shop's workflow triggers.
 * @param total slots of all shops together
 * @param perShop slots of one shop
 * @param now milliseconds of a clock that is never set
 */
export function createConcurrencyLimiter(total: number, perShop: number, now: () => number): ConcurrencyLimiter {
  const slowLimit = Math.ceil(total / 2);
  const keptForFirst = Math.max(0, Math.floor((total - perShop) / 4));
  const keptForQuick = Math.floor(keptForFirst / 2);
  const paces = createPaces();
  const rotations: Record<SlotPace, Rotation> = {
    quick: createRotation(),
    untried: createRotation(),
    slow: createRotation(),
  };
  const taken: Record<SlotPace, number> = { quick: 0, untried: 0, slow: 0 };
  const takenByShop = new Map<number, number>();
  /** Attempts that run for less than a second, in the order of their beginning. */
  const recent = new Set<Running>();
  const longRunningByShop: Record<DeliveryKind, Map<number, number>> = { webhook: new Map(), trigger: new Map() };
  let heldBack = false;

  function free(): number {
    return total - taken.quick - taken.untried - taken.slow;
  }

  function add(counts: Map<number, number>, shopId: number, difference: number): void {
    const count = (counts.get(shopId) ?? 0) + difference;
    if (count === 0) counts.delete(shopId);
    else counts.set(shopId, count);
  }

  /** From now on, attempts that have run for a second count as slow. */
  function countLongRunningAsSlow(): void {
    for (const attempt of recent) {
      if (now() - attempt.beganMs < QUICK_MS) break;
      recent.delete(attempt);
      taken[attempt.pace] -= 1;
      taken.slow += 1;
      attempt.pace = "slow";
      add(longRunningByShop[attempt.kind], attempt.shopId, 1);
    }
  }

  /** Adds slots to `shares`, one for each shop and round, until there are no more. @returns how many it added */
  function shareInTurn(
    pace: SlotPace,
    shopIds: readonly number[],
    limitPerShop: number,
    available: number,
    shares: Map<number, number>,
  ): number {
    let added = 0;
    let round = rotations[pace].order(shopIds, (shopId) => shopId);
    while (round.length > 0 && added < available) {
      round = round.filter((shopId) => {
        const share = shares.get(shopId) ?? 0;
        if (added >= available || (takenByShop.get(shopId) ?? 0) + share >= limitPerShop) return false;
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
    get heldBack() {
      return heldBack;
    },
    share(dueShops) {
      countLongRunningAsSlow();
      const shares = new Map<number, number>();
      const due: Record<SlotPace, number[]> = { quick: [], untried: [], slow: [] };
      for (const { shopId, kind } of dueShops) {
        if (!longRunningByShop[kind].has(shopId)) due[paces.of(shopId, kind, now())].push(shopId);
      }
      let left = free();
      left -= shareInTurn("quick", due.quick, 1, left, shares);
      const untried = shareInTurn("untried", due.untried, 1, Math.min(left - keptForQuick, BEGIN_TOGETHER), shares);
      left -= untried;
      left -= shareInTurn("quick", due.quick, perShop, left - keptForFirst, shares);
      const limit = Math.min(left - keptForFirst, slowLimit - taken.slow, BEGIN_TOGETHER - untried);
      heldBack = untried + shareInTurn("slow", due.slow, 1, limit, shares) === BEGIN_TOGETHER;
      return shares;
    },
    limitOf({ shopId, kind }) {
      return paces.of(shopId, kind, now()) === "quick" ? perShop : 1;
    },
    take(shopId, kind, url) {
      paces.begin(shopId, kind, url);
      const attempt: Running = { shopId, kind, pace: paces.of(shopId, kind, now()), beganMs: now() };
      taken[attempt.pace] += 1;
      add(takenByShop, shopId, 1);
      recent.add(attempt);
      return (ending) => {
        if (!recent.delete(attempt)) add(longRunningByShop[kind], shopId, -1);
        taken[attempt.pace] -= 1;
        add(takenByShop, shopId, -1);
        return ending && paces.note(shopId, kind, url, now() - attempt.beganMs, ending, now());
      };
    },
    restore(shopId, url, pace, timeoutAgeMs) {
      paces.restore(shopId, url, pace, timeoutAgeMs, now());
    },
  };
}
