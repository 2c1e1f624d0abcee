import type { Pace } from "../domain/delivery.ts";

/** An attempt that takes less time counts as quick. */
export const QUICK_MS = 1_000;
/** An endpoint is slow after this many attempts in a row that were not quick. One happens to every endpoint. */
const SLOW_AFTER_ATTEMPTS = 2;
/** For so long an endpoint stays slow after a timeout, even if it answers quickly: it may hang again in waves. */
const SLOW_AFTER_TIMEOUT_MS = 5 * 60_000;
/** A later timeout is stored again only after this time. */
const STORE_TIMEOUT_AGAIN_MS = 60_000;

/** What should be stored of an endpoint. */
export interface PaceChange {
  pace: Pace;
  timedOut: boolean;
}

interface State {
  /** The endpoint; null if only workflow triggers were attempted. */
  url: string | null;
  slowInARow: number;
  timedOutAtMs: number;
  stored: { pace: Pace; timedOutAtMs: number } | undefined;
}

export interface Paces {
  of(shopId: number, nowMs: number): Pace | "untried";
  /** Takes over what is stored. @param timeoutAgeMs how long ago the last timeout was; infinite if there was none */
  restore(shopId: number, url: string, pace: Pace, timeoutAgeMs: number, nowMs: number): void;
  /** An attempt begins. Another URL than before is another endpoint, which was never tried. */
  begin(shopId: number, url: string): void;
  /** @returns what should be stored now, if anything */
  note(
    shopId: number,
    url: string | null,
    durationMs: number,
    timedOut: boolean,
    nowMs: number,
  ): PaceChange | undefined;
}

/** Remembers how quick the last attempts of each shop were. Times are of a clock that is never set. */
export function createPaces(): Paces {
  const states = new Map<number, State>();

  function change(state: State, timedOut: boolean, nowMs: number): PaceChange | undefined {
    const { stored, slowInARow } = state;
    const pace = slowInARow >= SLOW_AFTER_ATTEMPTS ? "slow" : "quick";
    const isNewTimeout = timedOut && nowMs - (stored?.timedOutAtMs ?? -Infinity) >= STORE_TIMEOUT_AGAIN_MS;
    if (stored?.pace === pace && !isNewTimeout) return undefined;
    state.stored = { pace, timedOutAtMs: timedOut ? nowMs : (stored?.timedOutAtMs ?? -Infinity) };
    return { pace, timedOut };
  }

  return {
    of(shopId, nowMs) {
      const state = states.get(shopId);
      if (state === undefined) return "untried";
      const isSlow = state.slowInARow >= SLOW_AFTER_ATTEMPTS || nowMs - state.timedOutAtMs < SLOW_AFTER_TIMEOUT_MS;
      return isSlow ? "slow" : "quick";
    },
    restore(shopId, url, pace, timeoutAgeMs, nowMs) {
      const timedOutAtMs = nowMs - timeoutAgeMs;
      const slowInARow = pace === "slow" ? SLOW_AFTER_ATTEMPTS : 0;
      states.set(shopId, { url, slowInARow, timedOutAtMs, stored: { pace, timedOutAtMs } });
    },
    begin(shopId, url) {
      const state = states.get(shopId);
      if (state !== undefined && state.url !== null && state.url !== url) states.delete(shopId);
    },
    note(shopId, url, durationMs, timedOut, nowMs) {
      const known = states.get(shopId);
      const state = known ?? { url, slowInARow: 0, timedOutAtMs: -Infinity, stored: undefined };
      states.set(shopId, state);
      state.url = url ?? state.url;
      const wasQuick = !timedOut && durationMs < QUICK_MS;
      // A timeout makes an endpoint slow at once, and so does a first attempt that is not quick.
      const atOnce = timedOut || known === undefined;
      state.slowInARow = wasQuick ? 0 : state.slowInARow + (atOnce ? SLOW_AFTER_ATTEMPTS : 1);
      if (timedOut) state.timedOutAtMs = nowMs;
      return change(state, timedOut, nowMs);
    },
  };
}
