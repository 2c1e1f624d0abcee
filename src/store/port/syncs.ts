import type { SyncKind, SyncRun } from "../../domain/platform/sync.ts";

/** The last run of a kind that was completed. Times in epoch milliseconds. */
interface CompleteSync {
  /** The mirror has everything up to this time; null if no run of this kind ever read everything. */
  startedAt: number | null;
  endedAt: number;
  /** Rows that the run changed. */
  changed: number;
}

export interface SyncStore {
  /** A run that began and was not completed. */
  unfinished(shopId: number, kind: SyncKind): Promise<SyncRun | undefined>;
  lastComplete(shopId: number, kind: SyncKind): Promise<CompleteSync | undefined>;
  /** Notes how far a run is. Two runs at once are harmless: each notes only what it has applied. */
  save(shopId: number, kind: SyncKind, run: SyncRun): Promise<void>;
  /**
   * Completes a run.
   * @param startedAt the mirror now has everything up to this time; undefined where the run left a gap, and the former
   *   time stays
   */
  complete(shopId: number, kind: SyncKind, startedAt: number | undefined, changed: number, now: number): Promise<void>;
}
