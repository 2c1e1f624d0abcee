/**
 * The tables that tests may read. `order` has the columns that sort the rows, and `flags` the boolean columns. A row
 * has one form on every engine: dates and counts are numbers, flags are booleans, bytes are hexadecimal digits, JSON is
 * the stored text.
 */
const TABLES = {
  admin_forms: { order: ["session", "form"], flags: [] },
  admin_links: { order: ["shop_id", "hash"], flags: [] },
  admin_notices: { order: ["number"], flags: [] },
  admin_sessions: { order: ["shop_id", "hash"], flags: [] },
  admin_wrong_tokens: { order: ["network"], flags: [] },
  alert_addresses: { order: ["number"], flags: [] },
  alert_notices: { order: ["number"], flags: [] },
  alerts: { order: ["shop_id", "cause"], flags: ["told"] },
  api_keys: { order: ["shop_id", "id"], flags: ["legacy"] },
  attempts: { order: ["shop_id", "delivery", "number"], flags: [] },
  audit: { order: ["number"], flags: [] },
  change_spans: { order: ["shop_id", "span"], flags: [] },
  changes: { order: ["shop_id", "resource", "number"], flags: [] },
  checkpoint_origins: { order: ["shop_id", "move"], flags: [] },
  connections: { order: ["shop_id"], flags: ["load_pending"] },
  contract_reads: { order: ["shop_id", "contract"], flags: [] },
  custom_fields: { order: ["shop_id"], flags: [] },
  customers: { order: ["shop_id", "id"], flags: [] },
  data_requests: { order: ["shop_id", "id"], flags: [] },
  deliveries: { order: ["number"], flags: ["test", "redacted"] },
  delivery_counts: { order: ["shop_id", "kind", "day", "outcome"], flags: [] },
  unsent_events: { order: ["shop_id", "day", "subject", "topic", "cycle"], flags: [] },
  former_branches: { order: ["shop_id", "branch"], flags: [] },
  inbox: { order: ["number"], flags: ["needs_platform"] },
  meta: { order: ["name"], flags: [] },
  occurrences: { order: ["shop_id", "type", "id"], flags: [] },
  order_stages: { order: ["number"], flags: ["complete"] },
  orders: { order: ["shop_id", "id"], flags: ["retries_exhausted", "declined", "charged"] },
  platform_warnings: { order: ["shop_id", "kind"], flags: [] },
  platform_webhooks: { order: ["shop_id", "id"], flags: [] },
  shop_moves: { order: ["move"], flags: [] },
  shops: { order: ["id"], flags: ["plan_fixed"] },
  staged_order_lines: { order: ["shop_id", "stage", "order_gid", "gid"], flags: [] },
  staged_orders: { order: ["shop_id", "stage", "gid"], flags: [] },
  subscription_fields: { order: ["shop_id", "id"], flags: [] },
  subscriptions: { order: ["shop_id", "id"], flags: ["cycles_given"] },
  syncs: { order: ["shop_id", "kind"], flags: [] },
  uninstallations: { order: ["shop_id"], flags: ["contracts_ended"] },
  webhook_endpoints: { order: ["shop_id"], flags: [] },
  webhook_secrets: { order: ["shop_id", "version"], flags: [] },
  widget_styles: { order: ["shop_id"], flags: [] },
} satisfies Record<string, { order: string[]; flags: string[] }>;

export type Table = keyof typeof TABLES;
export const TABLE_NAMES = Object.keys(TABLES) as Table[];
const WITHOUT_SHOP: Table[] = ["admin_forms", "admin_notices", "admin_wrong_tokens", "meta", "shops"];
/** Tables whose rows have a shop's id. */
export const SHOP_TABLES = TABLE_NAMES.filter((table) => !WITHOUT_SHOP.includes(table));

export type Row = Record<string, unknown>;

/** Converts an engine's rows to the common form, and sorts them. */
export function sorted(table: Table, rows: readonly Row[]): Row[] {
  const { order, flags } = TABLES[table] as { order: string[]; flags: string[] };
  const normal = rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([column, value]) => [column, normalValue(value, flags.includes(column))]),
    ),
  );
  return normal.sort((a, b) => order.reduce((sum, column) => (sum !== 0 ? sum : compare(a[column], b[column])), 0));
}

function normalValue(value: unknown, isFlag: boolean): unknown {
  if (value instanceof Uint8Array) return value.toHex();
  return isFlag && value !== null ? Boolean(value) : value;
}

/** Compares numbers, or texts by their code units. Engines may sort texts differently, by their collations. */
function compare(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [left, right] = [String(a), String(b)];
  return left < right ? -1 : Number(left > right);
}
