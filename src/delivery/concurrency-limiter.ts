import type { DeliveryKind, Pace } from "../domain/deliveries/delivery.ts";
import { addTo, createRotation, type Rotation } from "../lib/slots.ts";
import type { QueueClaim, SendQueue } from "../store/port/deliveries.ts";
import type { AttemptOutcome } from "./attempt.ts";
import { type AttemptTarget, createPaces, type Paces, QUICK_MS, queueKey, type SlotPace } from "./paces.ts";

/** The part of an attempt's outcome that decides the pace. */
export type Ending = Pick<AttemptOutcome, "timedOut">;

export interface ConcurrencyLimiter {
  /** How many slots are free. */
  readonly free: number;
  /** Whether the last call of `share` reached `BEGIN_TOGETHER`. If so, `share` may have skipped queues: repeat it. */
  readonly heldBack: boolean;
  /**
   * Divides the free slots among the queues with due deliveries. The slots stay free until `take`.
   * @param due sorted by ascending shop id
   * @returns a claim for each queue that gets slots. `count`: the number of slots. `limit`: the maximum number of
   *   slots that the queue's pace allows, counted over all processes
   */
  share(due: readonly SendQueue[]): QueueClaim[];
  /**
   * Takes a slot for one attempt.
   * @param url the endpoint; null for a workflow trigger
   * @returns a function that gives the slot back. Call it once. Omit `ending` if the attempt says nothing about
   *   the endpoint. The function returns what `Paces.toStore` returns
   */
  take(shopId: number, kind: DeliveryKind, url: string | null): (ending?: Ending) => Pace | undefined;
  /** See `Paces.restore`. */
  restore(shopId: number, url: string, pace: Pace, timeoutAgeMs: number): void;
}

/**
 * Maximum number of attempts at untried and slow endpoints that begin in one turn, because all of them may hang.
 * Attempts at recovering endpoints have the same limit and are counted separately.
 */
const BEGIN_TOGETHER = 32;
/**
 * Quick endpoints must not take all slots. So one slot in 16 is ensured for each of the paces untried, recovering and
 * slow. The first slots of quick endpoints leave the ensured slots of untried endpoints free. The other slots of quick
 * endpoints leave the ensured slots of recovering and slow endpoints free.
 */
const ENSURED_PART = 16;

interface RunningAttempt extends AttemptTarget {
  /** The attempt counts towards the slots of this pace. */
  pace: SlotPace;
  beganMs: number;
}

interface LimiterState {
  total: number;
  /** How many slots are reserved for the first attempts of quick and untried endpoints. */
  keptForFirst: number;
  now: () => number;
  paces: Paces;
  rotations: Record<SlotPace, Rotation>;
  taken: Record<SlotPace, number>;
  /** Slots in use, by `queueKey`. */
  takenByQueue: Map<number, number>;
  /** Attempts that have run for less than a second, the oldest first. */
  recent: Set<RunningAttempt>;
  heldBack: boolean;
}

/**
 * Limits how many attempts run at once. Each attempt needs a slot. The pace of a queue (`paces.ts`) decides how many
 * slots the queue has, and when it gets them, in this order:
 * - quick: the first slot of each queue without an attempt under way;
 * - untried (no attempt so far): one slot for each queue;
 * - quick: the other slots of each queue;
 * - recovering (it answers, and timed out in the last minutes): the slots of each queue;
 * - slow (it hangs, or takes a second or more): one slot for each queue.
 *
 * A quarter of all slots is reserved for the first two steps, and half of that quarter for the first step. The reason:
 * all quick endpoints, or all untried endpoints, may begin to hang at once. The last two steps share at most five
 * eighths of all slots, and the last step has at most half. An attempt that has run for a second counts as slow.
 * @param total slots of all queues together
 * @param perQueue slots of one queue
 * @param now milliseconds of a clock that only goes forward
 */
export function createConcurrencyLimiter(total: number, perQueue: number, now: () => number): ConcurrencyLimiter {
  const state: LimiterState = {
    total,
    keptForFirst: Math.max(0, Math.floor((total - perQueue) / 4)),
    now,
    paces: createPaces(perQueue),
    rotations: {
      quick: createRotation(),
      untried: createRotation(),
      recovering: createRotation(),
      slow: createRotation(),
    },
    taken: { quick: 0, untried: 0, recovering: 0, slow: 0 },
    takenByQueue: new Map(),
    recent: new Set(),
    heldBack: false,
  };
  return {
    get free() {
      return freeSlots(state);
    },
    get heldBack() {
      return state.heldBack;
    },
    share: (due) => share(state, due),
    take: (shopId, kind, url) => take(state, { shopId, kind, url }),
    restore: (shopId, url, pace, timeoutAgeMs) => state.paces.restore(shopId, url, pace, timeoutAgeMs, now()),
  };
}

function freeSlots({ total, taken }: LimiterState): number {
  return total - taken.quick - taken.untried - taken.recovering - taken.slow;
}

function share(state: LimiterState, dueQueues: readonly SendQueue[]): QueueClaim[] {
  const { total, keptForFirst, now, paces, recent, taken } = state;
  const keptForQuick = Math.floor(keptForFirst / 2);
  for (const attempt of recent) {
    if (now() - attempt.beganMs < QUICK_MS) break;
    countAsSlow(state, attempt);
  }
  const shares = new Map<SendQueue, number>();
  const due: Record<SlotPace, SendQueue[]> = { quick: [], untried: [], recovering: [], slow: [] };
  for (const queue of dueQueues) due[paces.of(queue, now())].push(queue);
  const ensured = (pace: SlotPace) =>
    Math.max(0, Math.min(due[pace].length, Math.floor(total / ENSURED_PART) - taken[pace]));
  let left = freeSlots(state);
  left -= shareInTurn(state, "quick", due.quick, left - ensured("untried"), shares, 1);
  const untriedLimit = Math.max(left - keptForQuick, Math.min(left, ensured("untried")));
  const untried = shareInTurn(state, "untried", due.untried, Math.min(untriedLimit, BEGIN_TOGETHER), shares);
  left -= untried;
  const leftForQuick = left - keptForFirst - ensured("recovering") - ensured("slow");
  left -= shareInTurn(state, "quick", due.quick, leftForQuick, shares);
  left = Math.min(left - keptForFirst, Math.ceil((total * 5) / 8) - taken.recovering - taken.slow);
  const recovering = shareInTurn(state, "recovering", due.recovering, Math.min(left, BEGIN_TOGETHER), shares);
  left -= recovering;
  const slowLimit = Math.min(left, Math.ceil(total / 2) - taken.slow, BEGIN_TOGETHER - untried);
  const slow = shareInTurn(state, "slow", due.slow, slowLimit, shares);
  state.heldBack = recovering === BEGIN_TOGETHER || untried + slow === BEGIN_TOGETHER;
  return [...shares].map(([queue, count]) => ({ ...queue, count, limit: paces.slotsOf(queue) }));
}

/** Moves a running attempt to the slow pace, because it has run for a second. */
function countAsSlow({ now, paces, recent, taken }: LimiterState, attempt: RunningAttempt): void {
  recent.delete(attempt);
  taken[attempt.pace] -= 1;
  taken.slow += 1;
  attempt.pace = "slow";
  paces.note(attempt, "long", now());
}

/**
 * Adds slots to `shares` in rounds. Round n gives one slot to each queue that has fewer than n slots.
 * @param most maximum number of slots of a queue. The queue's pace can set a lower limit
 * @returns the number of added slots
 */
function shareInTurn(
  { rotations, takenByQueue, paces }: LimiterState,
  pace: SlotPace,
  queues: readonly SendQueue[],
  available: number,
  shares: Map<SendQueue, number>,
  most = Number.POSITIVE_INFINITY,
): number {
  let added = 0;
  let round = rotations[pace].order(queues, queueKey);
  for (let slot = 1; round.length > 0 && slot <= most; slot += 1) {
    round = round.filter((queue) => {
      const share = shares.get(queue) ?? 0;
      const held = (takenByQueue.get(queueKey(queue)) ?? 0) + share;
      if (added >= available || held >= paces.slotsOf(queue)) return false;
      if (held >= slot) return true;
      shares.set(queue, share + 1);
      rotations[pace].noteServed(queueKey(queue));
      added += 1;
      return true;
    });
  }
  return added;
}

function take(state: LimiterState, target: AttemptTarget) {
  const { now, paces, taken, takenByQueue, recent } = state;
  paces.begin(target);
  const attempt: RunningAttempt = { ...target, pace: paces.of(target, now()), beganMs: now() };
  taken[attempt.pace] += 1;
  addTo(takenByQueue, queueKey(target), 1);
  recent.add(attempt);
  return (ending?: Ending): Pace | undefined => {
    if (recent.has(attempt) && now() - attempt.beganMs >= QUICK_MS) countAsSlow(state, attempt);
    const wasQuick = recent.delete(attempt);
    taken[attempt.pace] -= 1;
    addTo(takenByQueue, queueKey(target), -1);
    if (ending === undefined) return undefined;
    if (ending.timedOut) paces.note(target, "timeout", now());
    else if (wasQuick) paces.note(target, "quick", now());
    return paces.toStore(target);
  };
}
