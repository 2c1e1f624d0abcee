/** Small tables that are emptied with the mark, so that from then on no key, session, token or endpoint works. */
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

/** A table that can hold millions of rows of a shop. */
export interface LargeTable {
  name: string;
  /** The primary key beside `shop_id`. */
  key: string;
  /** The longest column. */
  text: string;
  /** The rows that stay until the shop's own row goes: they are the request for the removal. None if it is left out. */
  keptRows?: string;
}

/** A condition that no row meets. */
export const NO_ROWS = "false";
/** One step of a removal stops at the first of these limits, because writers wait for it. */
export const ROWS_PER_STEP = 100;
export const BYTES_PER_STEP = 512 * 1024;
