/** Small tables, emptied in the transaction of the mark: keys, sessions, tokens and endpoint end at once. */
export const EMPTIED_AT_ONCE = [
  "admin_links",
  "admin_sessions",
  "api_keys",
  "webhook_endpoints",
  "connections",
  "syncs",
  "order_stages",
  "data_requests",
];

/** A table with up to millions of rows of a shop. */
export interface LargeTable {
  name: string;
  /** The primary key beside `shop_id`. */
  key: string;
  /** The largest column. */
  text: string;
  /** Rows of the removal's own request. They go last, with the shop's row. */
  keptRows?: string;
}

export const NO_ROWS = "false";
/** A step of a removal ends at the first of these limits, because writers wait for it. */
export const ROWS_PER_STEP = 100;
export const BYTES_PER_STEP = 512 * 1024;
