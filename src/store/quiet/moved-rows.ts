import { type SQL, sql as template } from "drizzle-orm";
import { LISTING_TRIGGERS } from "../copy/listing-triggers.ts";
import { type MovedTable, movedTableOf, valueIn } from "../copy/moved-tables.ts";
import { placeIn } from "../copy/tables.ts";
import type { Vault } from "../files/vault.ts";
import type { MovedBatch, MovedRange, MovedRow, MovedShop, MovedValue } from "../port/shop-moves.ts";
import { addressPurpose } from "./alert-addresses.ts";
import { tokensPurpose } from "./connections.ts";
import {
  either,
  type QuietDatabase,
  type StatementValue,
  sql,
  type TransactionWork,
  tableOf,
  tx,
} from "./quiet-database.ts";
import { intakePurpose } from "./shops.ts";
import { webhookPurpose } from "./webhooks.ts";

type StoredValue = string | number | boolean | Uint8Array | null;
/** A row as the database returns it, with sealed secrets. */
type SealedRow = Record<string, StoredValue>;

/** For each table with a secret: the secret's column, and the purpose that the secret is sealed for. */
const SECRETS: Readonly<Record<string, { column: string; purpose: (shopId: number, row: SealedRow) => string }>> = {
  shops: {
    column: "intake_secret",
    purpose: (_, row) => intakePurpose(String(row["first_domain"] ?? row["domain"])),
  },
  connections: { column: "sealed", purpose: tokensPurpose },
  webhook_secrets: { column: "sealed", purpose: webhookPurpose },
  alert_addresses: { column: "sealed", purpose: addressPurpose },
};

/** Reads and writes the rows of a shop for a move, in the form that both databases share. */
export function movedRows(db: QuietDatabase, vault: Vault) {
  async function read(shop: MovedShop, name: string, range: MovedRange): Promise<MovedRow[]> {
    const moved = movedTableOf(name);
    const stored = await db.all<SealedRow>(selection(db, moved, shop, range));
    return stored.map((row) => movedRow(vault, moved, shop, row));
  }

  return {
    read,

    async readBatch(
      shop: MovedShop,
      name: string,
      range: MovedRange,
      most: { rows: number; bytes: number },
    ): Promise<MovedBatch> {
      const moved = movedTableOf(name);
      const keys =
        moved.key.length === 0 ? [] : await db.all<SealedRow>(sizeSelection(db, moved, shop, range, most.rows));
      let bytes = 0;
      const last = keys.slice(0, -1).find(({ row_bytes: size }, index) => {
        bytes += Number(size);
        return bytes >= most.bytes || index + 1 === most.rows;
      });
      const upTo = last && movedRow(vault, moved, shop, last);
      return { rows: await read(shop, name, { ...range, upTo: upTo ?? range.upTo }), upTo };
    },

    /** Removes the rows that have the keys of `removed`. Adds the rows of `added`. */
    *write(
      shop: MovedShop,
      name: string,
      removed: readonly MovedRow[],
      added: readonly MovedRow[],
    ): TransactionWork<void> {
      const moved = movedTableOf(name);
      const rows = added.map((row) => storedRow(vault, moved, shop, row));
      if (moved.table.name === "shops" || placeIn(db.engine, moved.table).isPart) {
        for (const row of rows) yield* tx.run(update(db, moved, row));
        return;
      }
      for (const row of removed) yield* tx.run(removal(db, moved, shop, row));
      if (rows.length === 0) return;
      const triggers = db.engine === "sqlite" ? Object.entries(LISTING_TRIGGERS) : [];
      for (const [, trigger] of triggers) yield* tx.run(template.raw(trigger));
      yield* tx.run(insertion(db, moved, rows));
      for (const [trigger] of triggers) yield* tx.run(template.raw(`DROP TRIGGER temp.${trigger}`));
    },
  };
}

function selection(db: QuietDatabase, moved: MovedTable, shop: MovedShop, range: MovedRange): SQL {
  const { expression } = placeIn(db.engine, moved.table);
  const columns = moved.columns.map((column) => `${expression(column)} AS ${column}`);
  return sql`SELECT ${template.raw(columns.join(", "))} ${within(db, moved, shop, range)}`;
}

/** Selects the keys of the first `rows` + 1 rows of a range, and for each row the size of its texts in bytes. */
function sizeSelection(db: QuietDatabase, moved: MovedTable, shop: MovedShop, range: MovedRange, rows: number): SQL {
  const { expression } = placeIn(db.engine, moved.table);
  const texts = moved.columns.filter((column) => isText(moved, column));
  const sizes = ["0", ...texts.map((column) => `coalesce(octet_length(${expression(column)}), 0)`)].join(" + ");
  return sql`SELECT ${template.raw(moved.key.join(", "))}, ${template.raw(sizes)} AS row_bytes
    ${within(db, moved, shop, range)} LIMIT ${rows + 1}`;
}

/** Returns the rest of a statement that selects the rows of a range, in key order. */
function within(db: QuietDatabase, moved: MovedTable, shop: MovedShop, range: MovedRange): SQL {
  const { stored, expression } = placeIn(db.engine, moved.table);
  const key = moved.key.join(", ");
  const values = (row: MovedRow) =>
    template.join(
      moved.key.map((column) => sql`${storedValue(moved, shop, column, valueIn(moved, row, column))}`),
      sql`, `,
    );
  const { kind, after, upTo, owners } = range;
  const conditions = [
    sql`${template.raw(expression(moved.shopColumn))} = ${shop.id}`,
    ...(kind === undefined ? [] : [sql`kind = ${kind}`]),
    ...(after === undefined ? [] : [sql`(${template.raw(key)}) > (${values(after)})`]),
    ...(upTo === undefined ? [] : [sql`(${template.raw(key)}) <= (${values(upTo)})`]),
  ];
  const rows = sql`FROM ${template.raw(stored)} WHERE ${template.join(conditions, sql` AND `)}`;
  const order = key === "" ? sql`` : sql`ORDER BY ${template.raw(key)}`;
  return sql`${owners === undefined ? rows : ofOwners(db, moved, shop, owners, rows)} ${order}`;
}

/**
 * Limits a SELECT to the rows that belong to these owners. Each owner must occur once.
 * @param found the SELECT without its columns: it begins with FROM
 */
function ofOwners(db: QuietDatabase, moved: MovedTable, shop: MovedShop, owners: readonly MovedRow[], found: SQL): SQL {
  const { table = "", columns = {} } = moved.owner ?? {};
  const owner = movedTableOf(table);
  const pairs = Object.entries(columns);
  const rows = owners.map((row) =>
    Object.fromEntries(
      pairs.map(([column, own]) => [`owner_${column}`, storedValue(moved, shop, column, valueIn(owner, row, own))]),
    ),
  );
  const types = Object.fromEntries(
    pairs.map(([column]) => [`owner_${column}`, isText(moved, column) ? "text" : "bigint"] as const),
  );
  const given = tableOf(db, "owners", types, rows);
  const names = template.raw(pairs.map(([column]) => column).join(", "));
  const ownerNames = template.raw(Object.keys(types).join(", "));
  return either(db, {
    sqlite: sql`${found} AND (${names}) IN (SELECT ${ownerNames} FROM ${given})`,
    // With IN, PostgreSQL may compare each row of the shop with each owner. OFFSET 0 makes it look up the rows of each
    // owner.
    postgres: sql`FROM ${given} CROSS JOIN LATERAL (
      SELECT * ${found} AND (${names}) = (${ownerNames}) OFFSET 0) AS found`,
  });
}

/** Converts a value of a moved row to the value in this database. Flags are 0 or 1. */
function storedValue(
  moved: MovedTable,
  { id, offsets }: MovedShop,
  column: string,
  value: MovedValue,
): string | number | null {
  if (column === moved.shopColumn) return id;
  const numbers = moved.numbersOf(column);
  if (numbers !== undefined && value !== null) return Number(value) + (offsets[numbers] ?? 0);
  return typeof value === "boolean" ? Number(value) : value;
}

function movedRow(vault: Vault, moved: MovedTable, shop: MovedShop, row: SealedRow): MovedRow {
  const secret = SECRETS[moved.table.name];
  return Object.entries(moved.table.columns).map(([column, kind]) => {
    const value = row[column] ?? null;
    if (column === moved.shopColumn) return 0;
    if (value === null || moved.isLeftEmpty(column)) return null;
    if (kind === "flag") return Boolean(value);
    if (value instanceof Uint8Array)
      return column === secret?.column ? vault.openNow(value, secret.purpose(shop.id, row)) : value.toHex();
    const numbers = moved.numbersOf(column);
    return numbers === undefined ? value : Number(value) - (shop.offsets[numbers] ?? 0);
  });
}

/** Converts a moved row to the values of this database. Bytes are hexadecimal digits, and flags 0 or 1. */
function storedRow(
  vault: Vault,
  moved: MovedTable,
  shop: MovedShop,
  row: MovedRow,
): Record<string, string | number | null> {
  const { columns } = moved;
  const values = Object.fromEntries(
    columns.map((column, index) => [column, storedValue(moved, shop, column, row[index] ?? null)]),
  );
  const secret = SECRETS[moved.table.name];
  return Object.fromEntries(
    columns.map((column) => {
      const value = values[column] ?? null;
      if (column === secret?.column && typeof value === "string")
        return [column, vault.sealNow(value, secret.purpose(shop.id, values)).toHex()];
      return [column, value];
    }),
  );
}

function insertion(db: QuietDatabase, moved: MovedTable, rows: readonly Record<string, string | number | null>[]): SQL {
  const { table } = moved;
  const { stored, written, filled } = placeIn(db.engine, table);
  const columns = written.map(({ column }) => column);
  const types = Object.fromEntries(
    columns.map((column) => [column, isText(moved, column) ? "text" : "bigint"] as const),
  );
  const values = columns.map((column) => decoded(db, moved, column, `given.${column}`));
  const names = [...columns, ...filled.map(({ column }) => column)].join(", ");
  const read = [...values, ...filled.map(({ value }) => value)].join(", ");
  return sql`INSERT INTO ${template.raw(stored)} (${template.raw(names)})
    SELECT ${template.raw(read)} FROM ${tableOf(db, "given", types, rows)}`;
}

function isText({ table }: MovedTable, column: string): boolean {
  return ["text", "bytes"].includes(table.columns[column] ?? "");
}

/** Returns the SQL of a value that was given as text or as a number. */
function decoded(db: QuietDatabase, { table }: MovedTable, column: string, given: string): string {
  const kind = table.columns[column];
  if (kind === "bytes") return db.engine === "sqlite" ? `unhex(${given})` : `decode(${given}, 'hex')`;
  return kind === "flag" && db.engine === "postgres" ? `${given} <> 0` : given;
}

function removal(db: QuietDatabase, moved: MovedTable, shop: MovedShop, row: MovedRow): SQL {
  const { stored } = placeIn(db.engine, moved.table);
  // SQLite finds custom fields by the columns of their owners.
  const columns = new Set([...moved.key, ...Object.keys(moved.owner?.columns ?? {})]);
  const conditions = Array.from(
    columns,
    (column) => sql`${template.raw(column)} = ${storedValue(moved, shop, column, valueIn(moved, row, column))}`,
  );
  const where = template.join([sql`shop_id = ${shop.id}`, ...conditions], sql` AND `);
  return sql`DELETE FROM ${template.raw(stored)} WHERE ${where}`;
}

/** Updates the shop's row in `shops`. If the table is only a part of `shops`, updates only the columns of this part. */
function update(db: QuietDatabase, moved: MovedTable, row: Record<string, string | number | null>): SQL {
  const { written, expression } = placeIn(db.engine, moved.table);
  const settings = written
    .filter(({ column }) => column !== moved.shopColumn)
    .map(({ column }) => sql`${template.raw(column)} = ${columnValue(moved, column, row[column] ?? null)}`);
  const id = row[moved.shopColumn] ?? 0;
  return sql`UPDATE shops SET ${template.join(settings, sql`, `)}
    WHERE ${template.raw(expression(moved.shopColumn))} = ${id}`;
}

function columnValue({ table }: MovedTable, column: string, value: string | number | null): StatementValue {
  const kind = table.columns[column];
  if (kind === "bytes" && typeof value === "string") return Uint8Array.fromHex(value);
  return kind === "flag" ? Boolean(value) : value;
}
