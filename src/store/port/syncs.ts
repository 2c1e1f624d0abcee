import type { SyncKind, SyncRun } from "../../domain/platform/sync.ts";

/** The last completed run of a kind. Times in epoch milliseconds. */
interface CompleteSync {
  /** The mirror is complete up to this time; null if no run of this kind was. */
  startedAt: number | null;
  endedAt: number;
  /** Rows that the run changed. */
  changed: number;
}

export interface SyncStore {
  /** An incomplete run. */
  unfinished(shopId: number, kind: SyncKind): Promise<SyncRun | undefined>;
  lastComplete(shopId: number, kind: SyncKind): Promise<CompleteSync | undefined>;
  /** Saves the progress of a run. Parallel runs are harmless: each saves only what it applied. */
  save(shopId: number, kind: SyncKind, run: SyncRun): Promise<void>;
  /**
   * Completes a run.
   * @param startedAt the mirror is complete up to this time; undefined keeps the former time, for a run with a gap
   */
  complete(shopId: number, kind: SyncKind, startedAt: number | undefined, changed: number, now: number): Promise<void>;
}
