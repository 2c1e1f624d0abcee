import type { CommitKeys } from "../../domain/decide/commit-keys.ts";
import { type LoadedRows, missingCustomers, noRows, occurrenceKey } from "../../domain/decide/snapshot.ts";
import { RESOURCES, type Resource } from "../../domain/resources.ts";
import type { OccurrenceType, Row } from "../../domain/rows.ts";
import {
  MIRROR_COLUMNS,
  type MirrorTable,
  type MirrorValue,
  mirroredRow,
  type StoredRow,
  writtenRow,
} from "../engine/mirrored-rows.ts";
import { columnArrays, pipeline, type Queries, type Writes } from "./database.ts";

/** A row to write, with its change number. */
export interface NumberedRow {
  shopId: number;
  row: Row;
  changeNumber: number;
}

/** Queries that find rows one by one, by their keys. A join could scan a whole table if the table has no statistics. */
const FOUND = { customers: lookUp("customers"), subscriptions: lookUp("subscriptions"), orders: lookUp("orders") };
const FOUND_OCCURRENCES = `SELECT place::int4 AS place
  FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS wanted (shop_id, type, id, place)
  CROSS JOIN LATERAL (
    SELECT 1 FROM occurrences
    WHERE occurrences.shop_id = wanted.shop_id AND occurrences.type = wanted.type AND occurrences.id = wanted.id LIMIT 1
  ) AS found`;

const UPSERTS = {
  customers: upsert("customers"),
  subscriptions: upsert("subscriptions"),
  orders: upsert("orders"),
  occurrences: upsert("occurrences"),
};

/**
 * Loads the rows of a commit in two steps. The second step loads the customers of loaded contracts. Sends all
 * statements of the first step without waiting for answers.
 * @returns rows by shop id
 */
export async function loadRows(tx: Queries, keys: readonly CommitKeys[]): Promise<Map<number, LoadedRows>> {
  const loaded = new Map(keys.map(({ shop }) => [shop.id, noRows()]));
  await pipeline([
    ...RESOURCES.map((table) => load(tx, table, loaded, keys, (each) => each[table])),
    loadOccurrences(tx, loaded, keys),
  ]);
  const missing = new Map([...loaded].map(([shopId, rows]) => [shopId, missingCustomers(rows)]));
  await load(tx, "customers", loaded, keys, ({ shop }) => missing.get(shop.id) ?? []);
  return loaded;
}

/** Adds the subscriptions and orders of redacted people to the keys. Call this after `lockShops`. */
export async function addRedacted(tx: Queries, keys: readonly CommitKeys[]): Promise<void> {
  const people = keys.flatMap((each) =>
    Array.from(each.redactedPeople, (gid) => ({ each, id: each.ids.customer(gid) })),
  );
  const tables = ["subscriptions", "orders"] as const;
  const found = await pipeline(
    tables.map((table) =>
      tx.all<{ place: number; id: string }>(
        `SELECT place::int4 AS place, found.id
         FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS wanted (shop_id, customer, place)
         CROSS JOIN LATERAL (
           SELECT id FROM ${table} WHERE ${table}.shop_id = wanted.shop_id AND customer_id = wanted.customer
         ) AS found`,
        columnArrays(people, ({ each, id }) => [each.shop.id, id]),
      ),
    ),
  );
  for (const [index, table] of tables.entries()) {
    for (const { place, id } of found[index] ?? []) {
      people[place - 1]?.each[table].add(id);
      if (table === "subscriptions") people[place - 1]?.each.customFields.add(id);
    }
  }
}

/** Inserts rows, or replaces rows with the same id. */
export async function writeRows(tx: Writes, rows: readonly NumberedRow[]): Promise<void> {
  const byTable = new Map<MirrorTable, MirrorValue[][]>();
  for (const { shopId, row, changeNumber } of rows) {
    const { table, values } = writtenRow(row);
    const gid = row.kind === "order" ? [row.resource.shopifyId] : [];
    const columns = byTable.get(table) ?? columnsOf(table).map(() => []);
    byTable.set(table, columns);
    for (const [index, value] of [shopId, changeNumber, ...values, ...gid].entries()) columns[index]?.push(value);
  }
  await pipeline(
    [...byTable].map(([table, columns]) => {
      const names = columnsOf(table);
      const arrays = columns.map((column, index) =>
        names[index] === "json" ? joinedTexts(column as string[]) : column,
      );
      return tx.run(UPSERTS[table], arrays);
    }),
  );
}

/** Loads the rows with these ids into `loaded`. A missing row is null there. */
async function load(
  tx: Queries,
  table: Resource,
  loaded: ReadonlyMap<number, LoadedRows>,
  keys: readonly CommitKeys[],
  idsOf: (keys: CommitKeys) => Iterable<string>,
): Promise<void> {
  const shopIds: number[] = [];
  const ids: string[] = [];
  for (const each of keys) {
    for (const id of idsOf(each)) {
      shopIds.push(each.shop.id);
      ids.push(id);
      loaded.get(each.shop.id)?.rows.set(id, null);
    }
  }
  if (ids.length === 0) return;
  const found = await tx.all<StoredRow & { place: number }>(FOUND[table], [shopIds, ids]);
  for (const { place, ...stored } of found) {
    loaded.get(shopIds[place - 1] ?? 0)?.rows.set(ids[place - 1] ?? "", mirroredRow(table, stored));
  }
}

async function loadOccurrences(
  tx: Queries,
  loaded: ReadonlyMap<number, LoadedRows>,
  keys: readonly CommitKeys[],
): Promise<void> {
  const types: OccurrenceType[] = ["reward", "cancel_flow"];
  const wanted = keys.flatMap(({ shop, occurrences }) =>
    types.flatMap((type) => Array.from(occurrences[type], (id) => ({ shopId: shop.id, type, id }))),
  );
  if (wanted.length === 0) return;
  const columns = columnArrays(wanted, ({ shopId, type, id }) => [shopId, type, id]);
  const found = await tx.all<{ place: number }>(FOUND_OCCURRENCES, columns);
  const places = new Set(found.map(({ place }) => place));
  for (const [index, { shopId, type, id }] of wanted.entries())
    loaded.get(shopId)?.occurrences.set(occurrenceKey(type, id), places.has(index + 1));
}

/** Returns SQL of the columns of a `StoredRow`. */
function storedColumns(table: Resource): string {
  const columns: readonly string[] = MIRROR_COLUMNS[table].values;
  return columns.map((column) => `${table}.${column}${typeOf(column) === "bigint" ? "::float8" : ""}`).join(", ");
}

function lookUp(table: Resource): string {
  return `SELECT place::int4 AS place, found.*
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS wanted (shop_id, id, place)
    CROSS JOIN LATERAL (
      SELECT ${storedColumns(table)} FROM ${table}
      WHERE ${table}.shop_id = wanted.shop_id AND ${table}.id = wanted.id LIMIT 1
    ) AS found`;
}

/**
 * Returns the columns to write: the shop, the change number, and MIRROR_COLUMNS. Orders also have the platform's gid,
 * because orders are found by it.
 */
function columnsOf(table: MirrorTable): string[] {
  const { key, values } = MIRROR_COLUMNS[table];
  return ["shop_id", "change_number", ...key, ...values, ...(table === "orders" ? ["gid"] : [])];
}

/** Returns an upsert of many rows, with an array for each column. */
function upsert(table: MirrorTable): string {
  const columns = columnsOf(table);
  const arrays = columns.map((column, index) =>
    column === "json" ? splitTexts(index + 1) : `$${index + 1}::${typeOf(column)}[]`,
  );
  // The primary key.
  const unique = table === "occurrences" ? ["shop_id", "type", "id"] : ["shop_id", "id"];
  const changed = ["change_number", ...MIRROR_COLUMNS[table].values, ...(table === "orders" ? ["gid"] : [])];
  return `INSERT INTO ${table} (${columns}) SELECT * FROM unnest(${arrays})
    ON CONFLICT (${unique}) DO UPDATE SET ${changed.map((column) => `${column} = excluded.${column}`)}`;
}

function typeOf(column: string): string {
  if (["cycles_given", "retries_exhausted", "declined", "charged"].includes(column)) return "boolean";
  const texts = ["json", "id", "type", "gid", "revision", "churn_type", "last_order_status", "reason"];
  return texts.includes(column) ? "text" : "bigint";
}

/**
 * Joins JSON texts with newlines into one parameter. The driver would quote an array character by character, which
 * takes three times as long. Our JSON contains no newline, because strings escape newlines.
 */
export function joinedTexts(texts: readonly string[]): string {
  return texts.join("\n");
}

/** Returns SQL that splits a parameter into the texts that `joinedTexts` joined. @param parameter its number */
export function splitTexts(parameter: number): string {
  return `string_to_array($${parameter}::text, E'\\n')`;
}
