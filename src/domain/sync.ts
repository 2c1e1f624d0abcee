/** Loading a shop whole, or what changed since a time. */
export type SyncKind = "full" | "changes";

/** What a run has read, by resource, and the rows and events that came of it. */
export interface SyncCounts {
  customers: number;
  subscriptions: number;
  orders: number;
  changed: number;
  events: number;
  /** What could not be read for what the platform says of it; the log has why. */
  skipped: number;
}

/** How far a run is: what came before `cursor` in `stage` is in the mirror. Times in epoch milliseconds. */
export interface SyncRun {
  startedAt: number;
  /** Whether events are queued for what it changes. */
  events: boolean;
  stage: "customers" | "subscriptions" | "orders" | "attempts";
  cursor: string | null;
  counts: SyncCounts;
}

export const NO_COUNTS: SyncCounts = { customers: 0, subscriptions: 0, orders: 0, changed: 0, events: 0, skipped: 0 };
