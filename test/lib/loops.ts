import { createTurnLoop } from "../../src/lib/turn-loop.ts";
import type { Sleep } from "../../src/lib/waits.ts";

interface Pause {
  ms: number;
  end(): void;
}

/** Makes a loop. The test ends its turns and pauses. */
export function loopWith(turn: () => Promise<void>) {
  const pauses: Pause[] = [];
  const failures: unknown[] = [];
  const sleep: Sleep = (ms, signal) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (signal?.aborted) resolve();
    signal?.addEventListener("abort", () => resolve());
    pauses.push({ ms, end: resolve });
    return promise;
  };
  const loop = createTurnLoop({ turn, sleep, onFailure: (thrown) => failures.push(thrown) });
  return { loop, pauses, failures };
}

/**
 * Makes a loop that counts its turns. After `hold`, turns do not end until `release`. A turn fails with `state.error`.
 */
export function countingLoop() {
  const state = { begun: 0, ended: 0, atOnce: 0, most: 0, error: undefined as Error | undefined };
  let held: PromiseWithResolvers<void> | undefined;
  const turn = async () => {
    state.begun += 1;
    state.atOnce += 1;
    state.most = Math.max(state.most, state.atOnce);
    const { error } = state;
    await held?.promise;
    state.atOnce -= 1;
    state.ended += 1;
    if (error !== undefined) throw error;
  };
  return {
    ...loopWith(turn),
    state,
    hold() {
      held = Promise.withResolvers<void>();
    },
    release() {
      held?.resolve();
      held = undefined;
    },
  };
}

/** Makes a counting loop whose first turn runs until `release` is called. */
export async function loopInTurn() {
  const counting = countingLoop();
  counting.hold();
  counting.loop.wake();
  await settle();
  return counting;
}

/** Waits until every requested turn has run, except turns that are held or paused. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 10; round += 1) await new Promise((next) => setImmediate(next));
}

/** Returns an object whose `happened` becomes true when the work ends. */
export function eventOf(work: Promise<unknown>): { happened: boolean } {
  const event = { happened: false };
  work.then(() => {
    event.happened = true;
  });
  return event;
}
