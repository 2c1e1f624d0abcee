import type { DeliveryKind, Pace } from "../domain/deliveries/delivery.ts";
import type { DueShop } from "../store/port/deliveries.ts";

/** An attempt that takes less time counts as quick. */
export const QUICK_MS = 1_000;
/** How long an endpoint counts as recovering after a timeout: it may hang in waves. */
const RECOVERING_MS = 5 * 60_000;

/** What an attempt shows: it ended within a second, it has run for a second, or it timed out. */
type Sign = "quick" | "long" | "timeout";

/** What the slots of an endpoint depend on. A slow endpoint has no slots of its own. */
export type SlotPace = "quick" | "untried" | "recovering" | "slow";

/** Where an attempt goes. */
export interface AttemptTarget extends DueShop {
  /** The endpoint; null for workflow triggers. */
  url: string | null;
}

interface PaceState {
  url: string | null;
  slots: number;
  timedOutAtMs: number;
}

export type Paces = ReturnType<typeof createPaces>;

/**
 * Learns from attempts how many slots each shop has, by additive increase and multiplicative decrease. A shop begins
 * with one. A quick attempt adds one, an attempt that runs for a second takes half, and a timeout takes all. A shop has
 * one pace for its webhooks and one for its workflow triggers, which go to the platform. Times come from a clock that
 * only goes forward.
 * @param perShop the most slots of a shop
 */
export function createPaces(perShop: number) {
  const states: Record<DeliveryKind, Map<number, PaceState>> = { webhook: new Map(), trigger: new Map() };
  return {
    of({ shopId, kind }: DueShop, nowMs: number): SlotPace {
      const state = states[kind].get(shopId);
      if (state === undefined) return "untried";
      if (state.slots === 0) return "slow";
      return nowMs - state.timedOutAtMs < RECOVERING_MS ? "recovering" : "quick";
    },
    /** Returns how many attempts may run at once, at least 1: a slow endpoint must be tried too. */
    slotsOf({ shopId, kind }: DueShop): number {
      return Math.max(1, states[kind].get(shopId)?.slots ?? 1);
    },
    /** Restores a stored pace. @param timeoutAgeMs time since the last timeout; infinite without a timeout */
    restore(shopId: number, url: string, pace: Pace, timeoutAgeMs: number, nowMs: number): void {
      states.webhook.set(shopId, { url, slots: pace === "slow" ? 0 : 1, timedOutAtMs: nowMs - timeoutAgeMs });
    },
    /** Notes that an attempt begins. A new URL is a new endpoint, so the shop becomes untried. */
    begin({ shopId, kind, url }: AttemptTarget): void {
      if (states[kind].get(shopId)?.url !== url) states[kind].delete(shopId);
    },
    /** Notes what an attempt shows. It says nothing about an endpoint that the shop got since the attempt began. */
    note({ shopId, kind, url }: AttemptTarget, sign: Sign, nowMs: number): void {
      const state = states[kind].get(shopId) ?? { url, slots: 1, timedOutAtMs: Number.NEGATIVE_INFINITY };
      if (state.url !== url) return;
      states[kind].set(shopId, state);
      if (sign === "timeout") state.timedOutAtMs = nowMs;
      const changed = { quick: Math.min(perShop, state.slots + 1), long: Math.floor(state.slots / 2), timeout: 0 };
      state.slots = changed[sign];
    },
    /**
     * Returns the pace to store; undefined for an endpoint that the shop had before. The pace does not count the
     * minutes after a timeout, because the time of the last timeout is stored too.
     */
    toStore({ shopId, kind, url }: AttemptTarget): Pace | undefined {
      const state = states[kind].get(shopId);
      if (state?.url !== url) return undefined;
      return state.slots === 0 ? "slow" : "quick";
    },
  };
}
