import { nextTurn } from "./turns.ts";
import type { Sleep } from "./waits.ts";

const PAUSE_MS = 900;

export interface TurnLoopSettings {
  /** Does all the work that waits. A turn that begins while the loop is stopping must not start new work. */
  turn: () => Promise<void>;
  /** Called with the error of a turn or of tracked work. The loop makes the next turn by itself. */
  onFailure: (thrown: unknown) => void;
  sleep: Sleep;
  /** How long after a failure the next turn waits. */
  pauseMs?: number;
}

export interface TurnLoop {
  /** Whether something failed since the last turn that succeeded. */
  readonly failing: boolean;
  readonly stopping: boolean;
  /** Whether a turn runs or is requested, or tracked work runs. */
  readonly busy: boolean;
  /** Asks for a turn. Many calls in one round of the event loop make one turn; a call during a turn makes one more. */
  wake(): void;
  /** Adds work that a turn started. Its end asks for a turn, and stop() waits for it. */
  track(work: Promise<void>): void;
  /**
   * Waits for the tracked work, and for a last turn if one is requested. From now on wake() does nothing. May be called
   * twice.
   */
  stop(): Promise<void>;
}

/**
 * Makes turns, one at a time, when it is woken. After a failure it pauses, so that a database that cannot be used does
 * not keep the program busy. Then it makes the turn again by itself: a wake during the pause is not lost, and no wake
 * is needed.
 *
 * While it stops, the end of tracked work still makes a turn, so that no result waits for the slowest work.
 */
export function createTurnLoop({ turn, onFailure, sleep, pauseMs = PAUSE_MS }: TurnLoopSettings): TurnLoop {
  const underWay = new Set<Promise<void>>();
  const end = new AbortController();
  let wanted = false;
  let failing = false;
  let pause: Promise<void> | undefined;
  let turning: Promise<void> | undefined;
  let running: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;

  function request(): void {
    wanted = true;
    running ??= run();
  }

  async function run(): Promise<void> {
    while (wanted) {
      await pause;
      // Now finish() makes the last turn, only once: a turn that fails again and again must not delay the stop.
      if (end.signal.aborted) break;
      // Lets everything that ends in this round of the event loop share the turn.
      await nextTurn();
      turning = makeTurn();
      await turning;
    }
    running = undefined;
  }

  async function makeTurn(): Promise<void> {
    wanted = false;
    try {
      await turn();
      failing = false;
    } catch (thrown) {
      fail(thrown);
    }
  }

  function fail(thrown: unknown): void {
    failing = true;
    wanted = true;
    // A failure during a pause does not lengthen it.
    pause ??= sleep(pauseMs, end.signal).then(() => {
      pause = undefined;
    });
    onFailure(thrown);
  }

  async function finish(): Promise<void> {
    // A turn that began before the stop may still start work.
    await turning;
    await Promise.all(underWay);
    end.abort();
    await running;
    if (wanted) await makeTurn();
  }

  return {
    get failing() {
      return failing;
    },
    get stopping() {
      return stopped !== undefined;
    },
    get busy() {
      return running !== undefined || underWay.size > 0;
    },
    wake() {
      if (stopped === undefined) request();
    },
    track(work) {
      const done = work.catch(fail).finally(() => {
        underWay.delete(done);
        request();
      });
      underWay.add(done);
    },
    stop() {
      stopped ??= finish();
      return stopped;
    },
  };
}
