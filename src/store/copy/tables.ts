/** Numbers are below 2^53. A flag is 0 or 1 in SQLite, a boolean in PostgreSQL. */
export type ColumnKind = "number" | "text" | "flag" | "bytes";

/** How a table of one engine differs from the common form. */
interface EnginePlace {
  /** The larger table in which this engine keeps the columns. That table is copied first, and `key` finds its rows. */
  partOf?: string;
  /** Columns that this engine computes, with the SQL that reads them. The copy never writes such columns. */
  computed?: Readonly<Record<string, string>>;
  /** Columns that this engine reads with the given SQL. A target writes the values unchanged. */
  read?: Readonly<Record<string, string>>;
  /** Columns that only this engine has, with the SQL of their values. A target writes these values. */
  filled?: Readonly<Record<string, string>>;
  /** Columns in whose order this engine reads fastest. Default: the key. */
  order?: readonly string[];
}

/** A table in the common form of both engines. */
export interface CopiedTable {
  name: string;
  columns: Readonly<Record<string, ColumnKind>>;
  /** Columns that identify a row. Rows are read in the order of the key, unless the engine has its own `order`. */
  key: readonly string[];
  /** SQL condition of the rows to copy. Default: all rows. */
  where?: string;
  /** The column whose numbers are never reused. */
  numbered?: string;
  sqlite?: EnginePlace;
  postgres?: EnginePlace;
}

/** Row of `meta` that marks a PostgreSQL database as an unfinished copy. */
export const UNFINISHED_COPY = "unfinished_copy";
/** Row of `meta` with the oid of the PostgreSQL database that made the epoch. */
export const EPOCH_DATABASE = "epoch_database";
/** Rows of `meta` that only the PostgreSQL engine has. */
const OWN_META = ["application", "schema", UNFINISHED_COPY, EPOCH_DATABASE];

/**
 * Tables that are not copied: short-lived data of the settings page, the work of nodes and processes, and the two
 * tables of left-over bodies. Those two are empty before a copy (postgres/left-over-bodies.ts). Only PostgreSQL nodes
 * of an older version still use them.
 */
export const NOT_COPIED = [
  "admin_notices",
  "admin_wrong_tokens",
  "nodes",
  "work_leases",
  "token_exchanges",
  "intake_bodies",
  "intake_parts",
];
/**
 * Tables that a copy does not write, because triggers fill them from other rows. `delivery_subjects` exists only in
 * PostgreSQL, `changes` in both engines, and the other tables only in SQLite.
 */
export const KEPT_BY_TRIGGERS = [
  "changes",
  "customer_subscriptions",
  "customer_orders",
  "contract_orders",
  "delivery_subjects",
];

/**
 * All copied tables. A referenced table comes before the tables that refer to it. A test compares the list with the
 * tables of both engines.
 */
export const COPIED_TABLES: readonly CopiedTable[] = [
  table("meta", "name", { text: "name value" }, { where: `name NOT IN (${OWN_META.map((name) => `'${name}'`)})` }),
  table(
    "shops",
    "id",
    {
      number: "id created_at",
      text: "domain first_domain plan currency retry_days credit_title triggers",
      flag: "plan_fixed",
      bytes: "intake_secret",
    },
    { numbered: "id" },
  ),
  table(
    "shop_changes",
    "shop_id",
    { number: "shop_id change_count change_span customer_count subscription_count order_count", text: "branch" },
    {
      sqlite: { partOf: "shops", computed: { shop_id: "id" } },
      // If `noted_count` differs from `change_count`, an older version made the last change, and its span is unknown.
      // The copy then sets `change_span` to 0, because 0 also means an unknown span in SQLite.
      postgres: {
        read: { change_span: "CASE WHEN noted_count = change_count THEN change_span ELSE 0 END" },
        filled: { noted_count: "CASE WHEN change_span = 0 THEN 0 ELSE change_count END", timeline: "''" },
      },
    },
  ),
  table("former_branches", "shop_id branch", { number: "shop_id change_count", text: "branch" }),
  table("change_spans", "shop_id span", { number: "shop_id span number" }),
  table("api_keys", "id", {
    number: "shop_id created_at last_used_at revoked_at",
    text: "id label fingerprint created_by",
    flag: "legacy",
    bytes: "hash",
  }),
  table("customers", "shop_id created_at id", {
    number: "shop_id created_at profile_as_of consent_as_of redacted_at redacted_after change_number",
    text: "id json",
  }),
  table("subscriptions", "shop_id started_at id", {
    number: "shop_id started_at renewals last_order_at change_number",
    text: "id json revision churn_type last_order_status",
    flag: "cycles_given",
  }),
  table(
    "orders",
    "shop_id billed_at id",
    {
      number: "shop_id billed_at attempt_count next_retry_at platform_attempts change_number",
      text: "id json gid reason",
      flag: "retries_exhausted declined charged",
    },
    { sqlite: { computed: { gid: "json_extract(json, '$.shopifyId')" } } },
  ),
  table(
    "subscription_fields",
    "shop_id id",
    { number: "shop_id started_at", text: "id json" },
    { sqlite: { order: ["shop_id", "started_at", "id"] } },
  ),
  table("custom_fields", "shop_id", { number: "shop_id", text: "definitions hidden_keys" }),
  table("widget_styles", "shop_id", { number: "shop_id", text: "source hash" }),
  table("occurrences", "shop_id type id", { number: "shop_id change_number", text: "type id json" }),
  table("contract_reads", "shop_id contract", {
    number: "shop_id began_at updated_at rated_at",
    text: "contract orders renewals currency_pair rate",
  }),
  table("webhook_endpoints", "shop_id", { number: "shop_id timed_out_at", text: "url topics pace" }),
  table("webhook_secrets", "shop_id version", {
    number: "shop_id version created_at overlap_ends_at",
    bytes: "sealed",
  }),
  table(
    "deliveries",
    "shop_id number",
    {
      number:
        "shop_id number secret_version attempts round next_attempt_at claimable_at last_status_code " +
        "created_at ended_at",
      text: "id kind topic body status lease error",
      flag: "test redacted",
    },
    { numbered: "number", sqlite: { order: ["number"] } },
  ),
  table(
    "attempts",
    "shop_id delivery number",
    { number: "shop_id delivery number started_at duration status_code", text: "error url answer" },
    { sqlite: { order: ["delivery", "number"] } },
  ),
  table("delivery_counts", "shop_id kind day outcome", {
    number: "shop_id day attempts last_at",
    text: "kind outcome",
  }),
  table("unsent_events", "shop_id day subject topic cycle", {
    number: "shop_id day cycle at",
    text: "subject topic reason",
  }),
  table("connections", "shop_id", {
    number: "shop_id expires_at connected_at events_since renewing_until trouble_since",
    text: "kind scopes renewing trouble",
    bytes: "sealed",
    flag: "load_pending",
  }),
  table("platform_warnings", "shop_id kind", { number: "shop_id since logged_at", text: "kind text" }),
  table("alerts", "shop_id cause", {
    number: "shop_id since failures last_at well_at told_at",
    text: "cause host error",
    flag: "told",
  }),
  table(
    "alert_addresses",
    "number",
    { number: "number shop_id added_at confirmed_at removed_at", text: "address", bytes: "hash sealed" },
    { numbered: "number" },
  ),
  table(
    "alert_notices",
    "number",
    { number: "number shop_id address created_at attempts next_attempt_at", text: "alert" },
    { numbered: "number" },
  ),
  table("uninstallations", "shop_id", { number: "shop_id uninstalled_at events_since", flag: "contracts_ended" }),
  table("platform_webhooks", "shop_id id", { number: "shop_id received_at", text: "id" }),
  table(
    "inbox",
    "shop_id number",
    {
      number: "shop_id number triggered_at received_at attempts next_attempt_at",
      text: "topic subject body status error",
      flag: "needs_platform",
    },
    { numbered: "number", sqlite: { order: ["number"] } },
  ),
  table("syncs", "shop_id kind", {
    number: "shop_id last_started_at last_ended_at last_changed held_until",
    text: "kind run holder progress",
  }),
  table("admin_links", "hash", { number: "shop_id expires_at used_at", bytes: "hash" }),
  table("admin_sessions", "hash", { number: "shop_id created_at expires_at", bytes: "hash" }),
  table("admin_forms", "session form", { bytes: "session form" }),
  table("data_requests", "shop_id id", { number: "shop_id requested_at due_at answered_at", text: "id customer" }),
  table(
    "order_stages",
    "shop_id number",
    { number: "shop_id number", flag: "complete" },
    { numbered: "number", sqlite: { order: ["number"] } },
  ),
  table("staged_orders", "shop_id stage gid", { number: "shop_id stage", text: "gid json" }),
  table("staged_order_lines", "shop_id stage order_gid gid", { number: "shop_id stage", text: "order_gid gid json" }),
  table(
    "audit",
    "shop_id number",
    { number: "shop_id number at", text: "who origin action subject old_values new_values" },
    { numbered: "number", sqlite: { order: ["number"] } },
  ),
  table("checkpoint_origins", "shop_id move", { number: "shop_id former_id", text: "move", bytes: "epoch" }),
  table("shop_moves", "move", { number: "shop_id", text: "move state domain first_domain target stop offsets" }),
  // This table comes last, because most tables refuse rows of a shop that is marked for removal.
  table(
    "shop_removals",
    "id",
    { number: "id removal_started_at" },
    { sqlite: { partOf: "shops" }, postgres: { partOf: "shops" } },
  ),
];

/** Makes an entry of the list. @param columns names of the columns of each kind, separated by spaces */
function table(
  name: string,
  key: string,
  columns: Partial<Record<ColumnKind, string>>,
  more: Partial<CopiedTable> = {},
): CopiedTable {
  const kinds = Object.entries(columns) as [ColumnKind, string][];
  return {
    name,
    key: key.split(" "),
    columns: Object.fromEntries(kinds.flatMap(([kind, names]) => names.split(" ").map((column) => [column, kind]))),
    ...more,
  };
}

/** Returns how one engine stores a table. */
export function placeIn(engine: "sqlite" | "postgres", { name, columns, key, [engine]: place = {} }: CopiedTable) {
  const { partOf, computed = {}, read = {}, filled = {}, order = key } = place;
  return {
    stored: partOf ?? name,
    isPart: partOf !== undefined,
    order,
    filled: Object.entries(filled).map(([column, value]) => ({ column, value })),
    expression: (column: string) => computed[column] ?? read[column] ?? column,
    /** Columns to write, with their index in a row. */
    written: Object.keys(columns).flatMap((column, index) => (column in computed ? [] : [{ column, index }])),
  };
}

/** Returns SQL that lists the tables of an engine that have rows. Leaves out `meta`. */
export function filledTablesText(engine: "sqlite" | "postgres"): string {
  const tables = COPIED_TABLES.map((each) => placeIn(engine, each)).filter(
    ({ isPart, stored }) => !isPart && stored !== "meta",
  );
  return tables
    .map(({ stored }) => `SELECT '${stored}' AS name WHERE EXISTS (SELECT 1 FROM ${stored})`)
    .join(" UNION ALL ");
}
