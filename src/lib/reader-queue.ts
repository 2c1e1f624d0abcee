import type { LoadGauge } from "./load-gauge.ts";

/**
 * So many turns of the event loop pass without a reader while work is urgent, and then one reader runs. A commit waits
 * for two quiet turns before it begins, and an attempt needs some more: with a reader in each, an event would take
 * twice as long to arrive.
 */
const MAX_FREE_TURNS = 8;

/** Lets readers in one by one. */
export interface ReaderQueue {
  /**
   * @returns undefined if a reader may run now; otherwise a promise that resolves when it may. It must run at once
   *   then, synchronously or in microtasks.
   */
  enter(): Promise<void> | undefined;
  /** Called by a reader that took long: the next one runs in another turn, also while nothing else is under way. */
  noteLong(): void;
}

/**
 * While other work is under way, lets one reader run in a turn of the event loop, so that the work waits for one reader
 * and not for as many as there are connections. Otherwise nobody waits, unless a reader took long.
 */
export function createReaderQueue(load: Pick<LoadGauge, "busy" | "urgent">): ReaderQueue {
  const waiting: (() => void)[] = [];
  /** Whether a reader has to wait for the next turn. */
  let taken = false;
  let freeTurns = 0;

  function nextTurn(): void {
    taken = waiting.length > 0;
    if (!taken) return;
    setImmediate(nextTurn);
    if (load.urgent && freeTurns < MAX_FREE_TURNS) {
      freeTurns += 1;
      return;
    }
    freeTurns = 0;
    waiting.shift()?.();
  }

  function take(): void {
    if (taken) return;
    taken = true;
    setImmediate(nextTurn);
  }

  return {
    enter() {
      if (taken) return new Promise((resolve) => waiting.push(resolve));
      if (load.busy) take();
      return undefined;
    },
    noteLong: take,
  };
}
