import type { DeliveryKind, Pace } from "../domain/deliveries/delivery.ts";
import type { AttemptOutcome } from "./attempt.ts";

/** An attempt that takes less time counts as quick. */
export const QUICK_MS = 1_000;
/** An endpoint is slow after this many attempts in a row that were not quick. A single slow attempt is normal. */
const SLOW_AFTER_ATTEMPTS = 2;
/** How long an endpoint stays slow after a timeout, even if it answers quickly: it may hang in waves. */
const SLOW_AFTER_TIMEOUT_MS = 5 * 60_000;

/** The part of an attempt's outcome that decides the pace. */
export type Ending = Pick<AttemptOutcome, "error" | "timedOut">;

interface PaceState {
  /** The endpoint; null for workflow triggers. */
  url: string | null;
  slowInARow: number;
  timedOutAtMs: number;
}

export type Paces = ReturnType<typeof createPaces>;

/**
 * Remembers how quick the last attempts of each shop were. A shop has one pace for its webhooks and one for its
 * workflow triggers, which go to the platform. Times come from a clock that only goes forward.
 */
export function createPaces() {
  const states: Record<DeliveryKind, Map<number, PaceState>> = { webhook: new Map(), trigger: new Map() };

  const paceOf = ({ slowInARow }: PaceState) => (slowInARow >= SLOW_AFTER_ATTEMPTS ? "slow" : "quick");

  return {
    of(shopId: number, kind: DeliveryKind, nowMs: number): Pace | "untried" {
      const state = states[kind].get(shopId);
      if (state === undefined) return "untried";
      return nowMs - state.timedOutAtMs < SLOW_AFTER_TIMEOUT_MS ? "slow" : paceOf(state);
    },
    /** Restores a stored pace. @param timeoutAgeMs time since the last timeout; infinite without a timeout */
    restore(shopId: number, url: string, pace: Pace, timeoutAgeMs: number, nowMs: number): void {
      const slowInARow = pace === "slow" ? SLOW_AFTER_ATTEMPTS : 0;
      states.webhook.set(shopId, { url, slowInARow, timedOutAtMs: nowMs - timeoutAgeMs });
    },
    /** Notes that an attempt begins. A new URL is a new endpoint, so the shop becomes untried. */
    begin(shopId: number, kind: DeliveryKind, url: string | null): void {
      if (states[kind].get(shopId)?.url !== url) states[kind].delete(shopId);
    },
    /**
     * Notes how an attempt ended.
     * @returns the pace to store. It does not count the minutes after a timeout, because the time of the last timeout
     *   is stored too
     */
    note(
      shopId: number,
      kind: DeliveryKind,
      url: string | null,
      durationMs: number,
      { error, timedOut }: Ending,
      nowMs: number,
    ): Pace {
      const known = states[kind].get(shopId);
      const state = known ?? { url, slowInARow: 0, timedOutAtMs: -Infinity };
      states[kind].set(shopId, state);
      state.url = url;
      const wasQuick = !timedOut && durationMs < QUICK_MS;
      const isFirst = known === undefined;
      // A timeout makes an endpoint slow at once, and so does a first attempt that fails or is not quick.
      if (timedOut || (isFirst && (error !== null || !wasQuick))) state.slowInARow = SLOW_AFTER_ATTEMPTS;
      else state.slowInARow = wasQuick ? 0 : state.slowInARow + 1;
      if (timedOut) state.timedOutAtMs = nowMs;
      return paceOf(state);
    },
  };
}
