import { nextTurn, type Sleep } from "./waits.ts";

/** How long the loop pauses after a failure. */
const PAUSE_MS = 900;

export interface TurnLoopSettings {
  /** Does all waiting work. A turn must not start new work while the loop is stopping. */
  turn: () => Promise<void>;
  /** Called with the error of a turn or of tracked work. The loop then makes the next turn by itself. */
  onFailure: (thrown: unknown) => void;
  sleep: Sleep;
}

export interface TurnLoop {
  /** Whether something has failed since the last turn that succeeded. */
  readonly failing: boolean;
  readonly stopping: boolean;
  /** Whether a turn runs or is requested, or tracked work runs. */
  readonly busy: boolean;
  /** Requests a turn. Calls in one round of the event loop share a turn. A call during a turn causes another turn. */
  wake(): void;
  /** Adds work that a turn started. When the work ends, the loop makes a turn. stop() waits for the work. */
  track(work: Promise<void>): void;
  /** Waits for tracked work and a requested turn. After that, wake() does nothing. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Makes turns, one at a time, when it is woken. After a failure it pauses, and then makes the turn again by itself. A
 * wake during the pause is not lost. A stopping loop waits for the tracked work, and makes a turn whenever some of this
 * work ends. So a result does not wait until the slowest work has ended.
 */
export function createTurnLoop(settings: TurnLoopSettings): TurnLoop {
  return new Loop(settings);
}

/** `wake` and `stop` are arrow functions, because callers pass them on. */
class Loop implements TurnLoop {
  failing = false;
  private readonly settings: TurnLoopSettings;
  private readonly underWay = new Set<Promise<void>>();
  private readonly end = new AbortController();
  private isWanted = false;
  private pause: Promise<void> | undefined;
  private turning: Promise<void> | undefined;
  private running: Promise<void> | undefined;
  private stopped: Promise<void> | undefined;

  constructor(settings: TurnLoopSettings) {
    this.settings = settings;
  }

  get stopping(): boolean {
    return this.stopped !== undefined;
  }

  get busy(): boolean {
    return this.running !== undefined || this.underWay.size > 0;
  }

  readonly wake = (): void => {
    if (!this.stopping) this.request();
  };

  readonly stop = (): Promise<void> => {
    this.stopped ??= this.finish();
    return this.stopped;
  };

  track(work: Promise<void>): void {
    const done = work
      .catch((thrown: unknown) => this.fail(thrown))
      .finally(() => {
        this.underWay.delete(done);
        this.request();
      });
    this.underWay.add(done);
  }

  private request(): void {
    this.isWanted = true;
    this.running ??= this.run();
  }

  private async run(): Promise<void> {
    while (this.isWanted) {
      await this.pause;
      // After the abort, only `finish` makes one last turn. Otherwise retries of a failing turn would delay the stop.
      if (this.end.signal.aborted) break;
      // All work that ends in this round of the event loop shares one turn.
      await nextTurn();
      this.turning = this.makeTurn();
      await this.turning;
    }
    this.running = undefined;
  }

  private async makeTurn(): Promise<void> {
    this.isWanted = false;
    try {
      await this.settings.turn();
      this.failing = false;
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  private fail(thrown: unknown): void {
    const { sleep, onFailure } = this.settings;
    this.failing = true;
    this.isWanted = true;
    // A failure during a pause does not lengthen the pause.
    this.pause ??= sleep(PAUSE_MS, this.end.signal).then(() => {
      this.pause = undefined;
    });
    onFailure(thrown);
  }

  private async finish(): Promise<void> {
    // Wait for a running turn: it may have begun before the stop, and may still start work.
    await this.turning;
    await Promise.all(this.underWay);
    this.end.abort();
    await this.running;
    if (this.isWanted) await this.makeTurn();
  }
}
