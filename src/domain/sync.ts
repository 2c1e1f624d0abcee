/** `full` loads everything of a shop. `changes` reconciles: it reads what changed since a time. */
export type SyncKind = "full" | "changes";

/** What a run has read, by resource, and how many rows it changed and events it queued. */
export interface SyncCounts {
  customers: number;
  subscriptions: number;
  orders: number;
  changed: number;
  events: number;
  /** Items that could not be mirrored because the platform's data makes no sense. The log says why. */
  skipped: number;
}

/** How far a run is: everything before `cursor` in `stage` is in the mirror. Times in epoch milliseconds. */
export interface SyncRun {
  startedAt: number;
  /** A reconciliation reads what changed since then. */
  from?: number;
  /** Whether events are queued for what it changes. */
  events: boolean;
  stage: "customers" | "subscriptions" | "orders" | "attempts";
  cursor: string | null;
  counts: SyncCounts;
}

export const NO_COUNTS: SyncCounts = { customers: 0, subscriptions: 0, orders: 0, changed: 0, events: 0, skipped: 0 };
