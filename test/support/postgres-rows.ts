import { SQL } from "bun";
import { afterTest } from "./cleanup.ts";
import { type Row, sorted, type Table } from "./tables.ts";

/** The PostgreSQL table for a table of the SQLite engine, if they differ. */
const SOURCES: Partial<Record<Table, string>> = {
  shops: "(SELECT * FROM shops JOIN shop_changes ON shop_changes.shop_id = shops.id) AS shops",
};
/** Columns that only the PostgreSQL engine has. */
const OWN_COLUMNS: Partial<Record<Table, string[]>> = {
  shops: ["shop_id", "noted_count", "timeline"],
  subscriptions: ["customer_id"],
  orders: ["gid", "customer_id", "contract_id"],
};

const connections = new Map<string, SQL>();

/** One connection for each test, because some tests poll until a row exists. */
function connectionTo(url: string): SQL {
  const known = connections.get(url);
  if (known !== undefined) return known;
  const sql = new SQL(url, { max: 1, prepare: false });
  connections.set(url, sql);
  afterTest(async () => {
    connections.delete(url);
    await sql.close();
  });
  return sql;
}

/** Counts a shop's rows in a table of a PostgreSQL database. */
export async function countPostgresRows(url: string, table: Table, shopId: number): Promise<number> {
  const rows = await connectionTo(url).unsafe(`SELECT 1 FROM ${table} WHERE shop_id = $1::bigint`, [shopId]);
  return rows.length;
}

/** All rows of a table of a PostgreSQL database, in the order and form that tables.ts describes. */
export async function readPostgresRows(url: string, table: Table): Promise<Row[]> {
  const sql = connectionTo(url);
  const rows = (await sql.unsafe(`SELECT * FROM ${SOURCES[table] ?? table}`)) as Row[];
  // Bun returns the numbers of bigint columns as text.
  const columns = await sql.unsafe(
    `SELECT column_name, data_type FROM information_schema.columns
       WHERE table_schema = 'public' AND table_name = ANY($1::text[])`,
    [table === "shops" ? [table, "shop_changes"] : [table]],
  );
  const numbers = new Set(
    (columns as { column_name: string; data_type: string }[]).flatMap(({ column_name, data_type }) =>
      data_type === "bigint" ? [column_name] : [],
    ),
  );
  return sorted(
    table,
    rows.map((row) =>
      Object.fromEntries(
        Object.entries(row)
          .filter(([name]) => !(OWN_COLUMNS[table] ?? []).includes(name))
          .map(([name, value]) => [name, numbers.has(name) && typeof value === "string" ? Number(value) : value]),
      ),
    ),
  );
}
