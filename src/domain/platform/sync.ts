/** `full` loads all data of a shop. `changes` reconciles: it reads changes since a time. */
export type SyncKind = "full" | "changes";

/** Counts of a run: items read (by resource), rows changed, events queued. */
export interface SyncCounts {
  customers: number;
  subscriptions: number;
  orders: number;
  changed: number;
  events: number;
  /** Items that cannot be mirrored, because the platform's data is invalid. The log says why. */
  skipped: number;
}

/** The part of a load that comes from the file of one bulk operation. */
export interface BulkPart {
  /** The operation's query. Each run has its own query text, by which a restarted run finds its own operation. */
  query: string;
  /** The gid of the operation; null until it was started. */
  operation: string | null;
  /** All lines before this byte offset of the file are stored. A line begins at this offset. */
  offset: number;
  /** How many customers or orders are stored. */
  count: number;
  /** How many customers or orders the shop had when the load began. */
  total: number;
  /** Number of the stage in `OrderStageStore` that gets the orders; null before that stage exists. */
  stage: number | null;
}

/** A list of the platform, and how many of its rows were read. */
export interface ListPosition {
  filter: string | null;
  rowCount: number;
}

/** The progress of a run. Times in epoch milliseconds. All items of `stage` before `cursor` are in the mirror. */
export interface SyncRun {
  startedAt: number;
  /** A reconciliation reads changes since this time. */
  from?: number;
  /** Whether events are queued for the changes of this run. */
  events: boolean;
  stage: "customers" | "subscriptions" | "orders" | "attempts";
  cursor: string | null;
  /** The list that `cursor` belongs to. After many rows, a run begins a new list. */
  list?: ListPosition | undefined;
  /** How many customers the shop had when a load began. */
  customerTotal?: number;
  /** How many contracts the shop has, if a load counted them. */
  contractTotal?: number;
  /** The unfinished parts that come from bulk operations. All other items are read page by page. */
  bulk?: { customers?: BulkPart; orders?: BulkPart };
  counts: SyncCounts;
}

export const NO_COUNTS: SyncCounts = { customers: 0, subscriptions: 0, orders: 0, changed: 0, events: 0, skipped: 0 };
