import type { DeliveryKind, Pace } from "../domain/deliveries/delivery.ts";
import { addTo, createRotation, type Rotation } from "../lib/slots.ts";
import type { DueShop } from "../store/port/deliveries.ts";
import { createPaces, type Ending, type Paces, QUICK_MS } from "./paces.ts";

type SlotPace = ReturnType<Paces["of"]>;

export interface ConcurrencyLimiter {
  /** How many slots are free. */
  readonly free: number;
  /** Whether the last call of `share` reached `BEGIN_TOGETHER`. If so, other shops may wait: call `share` again. */
  readonly heldBack: boolean;
  /**
   * Divides the free slots among the shops with due deliveries. It takes no slot.
   * @param due sorted by ascending id
   * @returns the number of slots by shop; a shop without a slot is missing
   */
  share(due: readonly DueShop[]): Map<number, number>;
  /** The most slots that a shop may have now, in all processes together. It depends on the shop's pace. */
  limitOf(due: DueShop): number;
  /**
   * Takes a slot for one attempt.
   * @param url the endpoint; null for a workflow trigger
   * @returns a function that gives the slot back, to be called once. Omit `ending` if the attempt says nothing about
   *   the endpoint. The function returns what `Paces.note` returns
   */
  take(shopId: number, kind: DeliveryKind, url: string | null): (ending?: Ending) => Pace | undefined;
  /** See `Paces.restore`. */
  restore(shopId: number, url: string, pace: Pace, timeoutAgeMs: number): void;
}

/** How many attempts of untried and slow endpoints may begin together: all of them may time out. */
const BEGIN_TOGETHER = 32;

interface RunningAttempt {
  shopId: number;
  kind: DeliveryKind;
  /** The attempt counts towards the slots of this pace. */
  pace: SlotPace;
  beganMs: number;
}

interface LimiterState {
  total: number;
  perShop: number;
  now: () => number;
  paces: Paces;
  rotations: Record<SlotPace, Rotation>;
  taken: Record<SlotPace, number>;
  takenByShop: Map<number, number>;
  /** Attempts that have run for less than a second, the oldest first. */
  recent: Set<RunningAttempt>;
  longRunningByShop: Record<DeliveryKind, Map<number, number>>;
  heldBack: boolean;
}

/**
 * Limits how many attempts run at once. Each attempt needs a slot. The pace of a shop's endpoint decides when the shop
 * gets slots, in this order:
 * - quick: one slot for each shop without an attempt under way;
 * - untried (no attempt so far): one slot for each shop;
 * - quick: up to `perShop` slots for each shop;
 * - slow (it hangs, takes a second or more, or timed out in the last minutes): one slot for each shop, and at most half
 *   of all slots.
 *
 * A quarter of all slots is reserved for the first two steps, and half of that quarter for the first step. The reason:
 * all quick endpoints, or all untried endpoints, may begin to hang at once. An attempt that has run for a second counts
 * as slow. Until it ends, its shop gets no other slot for that kind of delivery. A shop's workflow triggers are treated
 * like an endpoint.
 * @param total slots of all shops together
 * @param perShop slots of one shop
 * @param now milliseconds of a clock that only goes forward
 */
export function createConcurrencyLimiter(total: number, perShop: number, now: () => number): ConcurrencyLimiter {
  const state: LimiterState = {
    total,
    perShop,
    now,
    paces: createPaces(),
    rotations: { quick: createRotation(), untried: createRotation(), slow: createRotation() },
    taken: { quick: 0, untried: 0, slow: 0 },
    takenByShop: new Map(),
    recent: new Set(),
    longRunningByShop: { webhook: new Map(), trigger: new Map() },
    heldBack: false,
  };
  const { paces } = state;
  return {
    get free() {
      return freeSlots(state);
    },
    get heldBack() {
      return state.heldBack;
    },
    share: (due) => share(state, due),
    limitOf: ({ shopId, kind }) => (paces.of(shopId, kind, now()) === "quick" ? perShop : 1),
    take: (shopId, kind, url) => take(state, shopId, kind, url),
    restore: (shopId, url, pace, timeoutAgeMs) => paces.restore(shopId, url, pace, timeoutAgeMs, now()),
  };
}

function freeSlots({ total, taken }: LimiterState): number {
  return total - taken.quick - taken.untried - taken.slow;
}

function share(state: LimiterState, dueShops: readonly DueShop[]): Map<number, number> {
  const { total, perShop, now, paces, taken, longRunningByShop } = state;
  const keptForFirst = Math.max(0, Math.floor((total - perShop) / 4));
  const keptForQuick = Math.floor(keptForFirst / 2);
  countLongRunningAsSlow(state);
  const shares = new Map<number, number>();
  const due: Record<SlotPace, number[]> = { quick: [], untried: [], slow: [] };
  for (const { shopId, kind } of dueShops) {
    if (!longRunningByShop[kind].has(shopId)) due[paces.of(shopId, kind, now())].push(shopId);
  }
  let left = freeSlots(state);
  left -= shareInTurn(state, "quick", due.quick, 1, left, shares);
  const untriedLimit = Math.min(left - keptForQuick, BEGIN_TOGETHER);
  const untried = shareInTurn(state, "untried", due.untried, 1, untriedLimit, shares);
  left -= untried;
  left -= shareInTurn(state, "quick", due.quick, perShop, left - keptForFirst, shares);
  const slowLimit = Math.min(left - keptForFirst, Math.ceil(total / 2) - taken.slow, BEGIN_TOGETHER - untried);
  const slow = shareInTurn(state, "slow", due.slow, 1, slowLimit, shares);
  state.heldBack = untried + slow === BEGIN_TOGETHER;
  return shares;
}

/** Counts attempts that have run for a second as slow. */
function countLongRunningAsSlow({ now, recent, taken, longRunningByShop }: LimiterState): void {
  for (const attempt of recent) {
    if (now() - attempt.beganMs < QUICK_MS) break;
    recent.delete(attempt);
    taken[attempt.pace] -= 1;
    taken.slow += 1;
    attempt.pace = "slow";
    addTo(longRunningByShop[attempt.kind], attempt.shopId, 1);
  }
}

/** Adds slots to `shares` in rounds, one for each shop and round. @returns the number of added slots */
function shareInTurn(
  { rotations, takenByShop }: LimiterState,
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

function take(state: LimiterState, shopId: number, kind: DeliveryKind, url: string | null) {
  const { now, paces, taken, takenByShop, recent, longRunningByShop } = state;
  paces.begin(shopId, kind, url);
  const attempt: RunningAttempt = { shopId, kind, pace: paces.of(shopId, kind, now()), beganMs: now() };
  taken[attempt.pace] += 1;
  addTo(takenByShop, shopId, 1);
  recent.add(attempt);
  return (ending?: Ending): Pace | undefined => {
    if (!recent.delete(attempt)) addTo(longRunningByShop[kind], shopId, -1);
    taken[attempt.pace] -= 1;
    addTo(takenByShop, shopId, -1);
    return ending && paces.note(shopId, kind, url, now() - attempt.beganMs, ending, now());
  };
}
