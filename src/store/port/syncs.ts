import type { SyncKind, SyncRun } from "../../domain/platform/sync.ts";

/** The last completed run of one kind of sync. Times in epoch milliseconds. */
interface CompleteSync {
  /** The mirror is complete up to this time. null if every run of this kind had a gap. */
  startedAt: number | null;
  endedAt: number;
  /** Number of rows that the run changed. */
  changed: number;
}

export interface SyncStore {
  /** Returns the run that is not complete. */
  unfinished(shopId: number, kind: SyncKind): Promise<SyncRun | undefined>;
  lastComplete(shopId: number, kind: SyncKind): Promise<CompleteSync | undefined>;
  /** Saves the progress of a run. Parallel runs are harmless, because each saves only what it applied. */
  save(shopId: number, kind: SyncKind, run: SyncRun): Promise<void>;
  /**
   * Completes a run.
   * @param startedAt the mirror is complete up to this time. For a run with a gap it is undefined, and the stored time
   *   stays
   */
  complete(shopId: number, kind: SyncKind, startedAt: number | undefined, changed: number, now: number): Promise<void>;
}
