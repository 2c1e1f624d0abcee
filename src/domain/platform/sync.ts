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

/** A part of a load that comes from a bulk operation of the platform: the file that the operation makes. */
export interface BulkPart {
  /** The query of the operation. No other run has the same. */
  query: string;
  /** The gid of the operation; null until it was started. */
  operation: string | null;
  /** Everything before this byte of the file is stored. A line begins there. */
  offset: number;
  /** How many customers or orders that are. */
  count: number;
  /** How many there were when the load began. */
  total: number;
  /** The number of the stage that takes the orders; null until there is one. */
  stage: number | null;
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
  /** How many customers there were when a load began. */
  customerTotal?: number;
  /** The parts that come from bulk operations and are not done. All else comes page by page. */
  bulk?: { customers?: BulkPart; orders?: BulkPart };
  counts: SyncCounts;
}

export const NO_COUNTS: SyncCounts = { customers: 0, subscriptions: 0, orders: 0, changed: 0, events: 0, skipped: 0 };
