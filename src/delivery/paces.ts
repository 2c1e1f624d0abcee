import type { Pace } from "../domain/deliveries/delivery.ts";
import type { SendQueue } from "../store/port/deliveries.ts";

/** An attempt that takes less time counts as quick. */
export const QUICK_MS = 1_000;
/** After a timeout, an endpoint counts as recovering for this time, because it may hang again. */
const RECOVERING_MS = 5 * 60_000;

/** What an attempt shows: it ended within a second, it has run for a second, or it timed out. */
type Sign = "quick" | "long" | "timeout";

/** The pace of an endpoint. It decides how many slots the endpoint has, and when the endpoint gets them. */
export type SlotPace = "quick" | "untried" | "recovering" | "slow";

/** Where an attempt goes. */
export interface AttemptTarget extends SendQueue {
  /** The endpoint; null for workflow triggers. */
  url: string | null;
}

interface PaceState {
  url: string | null;
  slots: number;
  timedOutAtMs: number;
}

export type Paces = ReturnType<typeof createPaces>;

/** Returns a number for each queue. The numbers sort queues by shop, and `trigger` before `webhook`. */
export function queueKey({ shopId, kind }: SendQueue): number {
  return 2 * shopId + (kind === "webhook" ? 1 : 0);
}

/**
 * Learns from attempts how many slots each queue has, by additive increase and multiplicative decrease. A queue begins
 * with one slot. A quick attempt adds one slot. An attempt that runs for a second removes half of the queue's slots. A
 * timeout removes all slots of the queue. Times come from a clock that only goes forward.
 * @param perQueue maximum number of slots of a queue
 */
export function createPaces(perQueue: number) {
  const states = new Map<number, PaceState>();
  return {
    of(queue: SendQueue, nowMs: number): SlotPace {
      const state = states.get(queueKey(queue));
      if (state === undefined) return "untried";
      if (state.slots === 0) return "slow";
      return nowMs - state.timedOutAtMs < RECOVERING_MS ? "recovering" : "quick";
    },
    /** Returns how many attempts may run at once. At least 1, because a slow endpoint must be tried too. */
    slotsOf(queue: SendQueue): number {
      return Math.max(1, states.get(queueKey(queue))?.slots ?? 1);
    },
    /** Restores a stored pace. @param timeoutAgeMs time since the last timeout; infinite without a timeout */
    restore(shopId: number, url: string, pace: Pace, timeoutAgeMs: number, nowMs: number): void {
      states.set(queueKey({ shopId, kind: "webhook" }), {
        url,
        slots: pace === "slow" ? 0 : 1,
        timedOutAtMs: nowMs - timeoutAgeMs,
      });
    },
    /** Notes that an attempt begins. A new URL is a new endpoint, so the queue's pace is forgotten. */
    begin(target: AttemptTarget): void {
      const key = queueKey(target);
      if (states.get(key)?.url !== target.url) states.delete(key);
    },
    /** Notes what an attempt shows. Ignores an attempt at an earlier URL of the shop. */
    note({ url, ...queue }: AttemptTarget, sign: Sign, nowMs: number): void {
      const key = queueKey(queue);
      const state = states.get(key) ?? { url, slots: 1, timedOutAtMs: Number.NEGATIVE_INFINITY };
      if (state.url !== url) return;
      states.set(key, state);
      if (sign === "timeout") state.timedOutAtMs = nowMs;
      const changed = { quick: Math.min(perQueue, state.slots + 1), long: Math.floor(state.slots / 2), timeout: 0 };
      state.slots = changed[sign];
    },
    /**
     * Returns the pace to store; undefined if the shop has another endpoint now. A recovering endpoint is stored as
     * quick, because the stored time of its last timeout shows that it is recovering.
     */
    toStore(target: AttemptTarget): Pace | undefined {
      const state = states.get(queueKey(target));
      if (state?.url !== target.url) return undefined;
      return state.slots === 0 ? "slow" : "quick";
    },
  };
}
