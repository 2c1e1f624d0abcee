import type { SyncProgress } from "../../domain/platform/load-progress.ts";
import type { SyncCounts, SyncRun } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";

export type OnProgress = (progress: SyncProgress) => void;

/** The current run of a shop. */
export interface ActiveRun {
  shop: Shop;
  run: SyncRun;
  /** Changes and saves the run, so that the next run continues there. */
  save(change?: Partial<SyncRun>): Promise<void>;
  onProgress: OnProgress;
}

export function addCounts(counts: SyncCounts, more: Partial<SyncCounts>): SyncCounts {
  const { customers = 0, subscriptions = 0, orders = 0, changed = 0, events = 0, skipped = 0 } = more;
  return {
    customers: counts.customers + customers,
    subscriptions: counts.subscriptions + subscriptions,
    orders: counts.orders + orders,
    changed: counts.changed + changed,
    events: counts.events + events,
    skipped: counts.skipped + skipped,
  };
}

/** Resets the counts of a run that reads all customers again. */
export function forgetCustomers(run: SyncRun): void {
  run.counts = { ...run.counts, customers: 0, skipped: 0 };
}
