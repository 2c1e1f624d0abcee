import type { LoadProgress } from "../../domain/platform/load-progress.ts";
import type { SyncKind, SyncRun } from "../../domain/platform/sync.ts";
import type { ConnectedShop } from "./connections.ts";

/** The last completed run of one kind of sync. Times in epoch milliseconds. */
interface CompleteSync {
  /**
   * Start of the last run without a gap: the mirror is complete up to this time. null if every run of this kind had a
   * gap.
   */
  startedAt: number | null;
  endedAt: number;
  /** Number of rows that the run changed. */
  changed: number;
}

/** Who loads a shop now, and how far the load is. */
export interface LoadState {
  /** The process that has claimed the load; null if no claim is valid. The process can be dead (`isLoading`). */
  holder: string | null;
  progress: LoadProgress;
}

/** A process's claim to load a shop. It expires, because the process may die. Times in epoch milliseconds. */
interface LoadClaim {
  holder: string;
  now: number;
  until: number;
  /** A holder whose process has ended. Its claim is ignored. */
  deadHolder?: string | undefined;
}

export interface SyncStore {
  /** Returns the unfinished run; undefined without one. */
  unfinished(shopId: number, kind: SyncKind): Promise<SyncRun | undefined>;
  lastComplete(shopId: number, kind: SyncKind): Promise<CompleteSync | undefined>;
  /** Saves the progress of a run. Parallel runs are harmless, because a run saves only what it applied itself. */
  save(shopId: number, kind: SyncKind, run: SyncRun): Promise<void>;
  /**
   * Completes a run.
   * @param startedAt the mirror is complete up to this time. undefined for a run with a gap: the stored time is kept
   */
  complete(shopId: number, kind: SyncKind, startedAt: number | undefined, changed: number, now: number): Promise<void>;
  /**
   * Lists the connected and loaded shops that are due, the longest due first. A shop is due if its mirror was last
   * complete at `until` or before. A shop is also due if it was connected after its mirror was last complete. Ignores a
   * stored time after `now`, because the clock was ahead when the time was stored. Times in epoch milliseconds.
   */
  unreconciled(until: number, now: number): Promise<ConnectedShop[]>;
  /** Lists the connected shops that were never loaded completely. */
  unloaded(): Promise<ConnectedShop[]>;
  /** Claims the load of a shop for one process. @returns false if another process has claimed it */
  claimLoad(shopId: number, claim: LoadClaim): Promise<boolean>;
  /** Extends a claim, and stores how far the load is. @returns false if the claim was lost */
  keepLoad(shopId: number, holder: string, until: number, progress: LoadProgress): Promise<boolean>;
  /** Ends a claim. */
  releaseLoad(shopId: number, holder: string, progress: LoadProgress): Promise<void>;
  /** Returns undefined for a shop that was never loaded, not even in part. */
  loadState(shopId: number, now: number): Promise<LoadState | undefined>;
}
