import type { Database } from "bun:sqlite";
import type { ShopChanges } from "../../domain/decide/commit.ts";
import type { CommitKeys } from "../../domain/decide/commit-keys.ts";
import { type LoadedRows, missingCustomers, noRows, occurrenceKey } from "../../domain/decide/snapshot.ts";
import { type Order, RESOURCES, type Resource, type Subscription } from "../../domain/resources.ts";
import type { OccurrenceType, Row } from "../../domain/rows.ts";
import {
  MIRROR_COLUMNS,
  type MirrorTable,
  type MirrorValue,
  mirroredRow,
  type StoredRow,
  writtenRow,
} from "../engine/mirrored-rows.ts";
import type { MirroredContract } from "../port/mirror.ts";

/**
 * Reads and writes the mirror's tables as rows of the domain, in the caller's transaction. Uses raw statements, because
 * an import spends most of its time here.
 */
export function mirrorRows(db: Database) {
  const stored = {
    customers: selectStatement(db, "customers"),
    subscriptions: selectStatement(db, "subscriptions"),
    orders: selectStatement(db, "orders"),
  };
  const occurrence = db.prepare<{ 1: number }, [number, OccurrenceType, string]>(
    "SELECT 1 FROM occurrences WHERE shop_id = ? AND type = ? AND id = ?",
  );
  const orders = db.prepare<{ json: string }, [number, string]>(
    `SELECT json FROM orders INDEXED BY orders_by_id
     WHERE shop_id = +? AND id IN (SELECT value FROM json_each(+?))`,
  );
  const contract = db.prepare<{ json: string; revision: string | null; customerGid: string }, [number, string]>(
    `SELECT subscriptions.json, revision, customers.json ->> '$.shopifyId' AS customerGid FROM subscriptions
     JOIN customers ON customers.shop_id = subscriptions.shop_id
     AND customers.id = subscriptions.json ->> '$.customerId'
     WHERE subscriptions.shop_id = +? AND subscriptions.id = +?`,
  );

  const inserts = perTable((table) => insertStatement(db, table));
  const updates = perTable((table) => updateStatement(db, table));
  const list = rowLister(db);

  function find(table: Resource, shopId: number, id: string): Row | null {
    const row = stored[table].get(shopId, id);
    return row === null ? null : mirroredRow(table, row);
  }

  return {
    addRedacted: redactedAdder(db),

    /** Loads the rows of one shop that a commit needs, and the customers of loaded contracts. Does not load texts. */
    load({ shop, ...keys }: CommitKeys): LoadedRows {
      const loaded = noRows();
      const { rows } = loaded;
      for (const table of RESOURCES) for (const id of keys[table]) rows.set(id, find(table, shop.id, id));
      for (const id of missingCustomers(loaded)) rows.set(id, find("customers", shop.id, id));
      for (const type of ["reward", "cancel_flow"] as const) {
        for (const id of keys.occurrences[type])
          loaded.occurrences.set(occurrenceKey(type, id), occurrence.get(shop.id, type, id) !== null);
      }
      return loaded;
    },

    /** Returns the orders with these ids that exist. */
    orders(shopId: number, ids: readonly string[]): Order[] {
      return orders.all(shopId, JSON.stringify(ids)).map(({ json }) => JSON.parse(json) as Order);
    },

    contract(shopId: number, contractId: string): MirroredContract | undefined {
      const found = contract.get(shopId, contractId);
      if (found === null) return undefined;
      const { json, ...rest } = found;
      return { subscription: JSON.parse(json) as Subscription, ...rest };
    },

    /** Inserts new rows and updates existing rows. A row's sort date is part of its primary key and never changes. */
    write(shopId: number, rows: ShopChanges["rows"]): void {
      for (const { row, isNew, changeNumber } of rows) {
        const { table, values } = writtenRow(row);
        const statement = (isNew ? inserts : updates)[table];
        statement.run(shopId, ...values, changeNumber);
      }
      // New rows are listed after all rows are written. If writing and listing took turns, the pages of both would
      // exceed SQLite's cache. Then an import would read a quarter more.
      for (const { row, isNew, changeNumber } of rows) if (isNew) list(shopId, row, changeNumber);
    },
  };
}

/** Makes a function that adds the subscriptions and orders of redacted people to the keys. */
function redactedAdder(db: Database): (keys: CommitKeys) => void {
  const idsIn = (table: string) =>
    db.prepare<{ id: string }, [number, string]>(`SELECT id FROM ${table} WHERE shop_id = ? AND customer_id = ?`);
  const ofCustomer = { subscriptions: idsIn("customer_subscriptions"), orders: idsIn("customer_orders") };
  return ({ shop, ids, subscriptions, orders, customFields, redactedPeople }) => {
    for (const gid of redactedPeople) {
      const customer = ids.customer(gid);
      for (const { id } of ofCustomer.orders.all(shop.id, customer)) orders.add(id);
      for (const { id } of ofCustomer.subscriptions.all(shop.id, customer)) {
        subscriptions.add(id);
        customFields.add(id);
      }
    }
  };
}

function selectStatement(db: Database, table: Resource) {
  const columns = MIRROR_COLUMNS[table].values;
  return db.prepare<StoredRow, [number, string]>(`SELECT ${columns} FROM ${table} WHERE shop_id = ? AND id = ?`);
}

function perTable<T>(make: (table: MirrorTable) => T): Record<MirrorTable, T> {
  const tables = Object.keys(MIRROR_COLUMNS) as MirrorTable[];
  return Object.fromEntries(tables.map((table) => [table, make(table)])) as Record<MirrorTable, T>;
}

/** Returns the columns, in the order of the parameters of the INSERT and of the UPDATE. */
function columnsOf(table: MirrorTable): string[] {
  const { key, values } = MIRROR_COLUMNS[table];
  return ["shop_id", ...key, ...values, "change_number"];
}

function insertStatement(db: Database, table: MirrorTable) {
  const columns = columnsOf(table);
  return db.prepare<unknown, MirrorValue[]>(`INSERT INTO ${table} (${columns}) VALUES (${columns.map(() => "?")})`);
}

/** Makes an UPDATE, not an upsert. Triggers on updates make an upsert a quarter slower, even if it inserts. */
function updateStatement(db: Database, table: MirrorTable) {
  const settings = columnsOf(table).map((column, index) => `${column} = +?${index + 1}`);
  const keys = 1 + MIRROR_COLUMNS[table].key.length;
  return db.prepare<unknown, MirrorValue[]>(
    `UPDATE ${table} SET ${settings.slice(keys)} WHERE ${settings.slice(0, keys).join(" AND ")}`,
  );
}

/**
 * Makes a function that adds a new row to the tables that list rows: `changes`, the contracts and orders of each
 * customer, and the orders of each contract. Scans read these tables. When the row changes or is removed, triggers
 * update them.
 */
function rowLister(db: Database): (shopId: number, row: Row, changeNumber: number) => void {
  const insertInto = (table: string) =>
    db.prepare<unknown, (string | number)[]>(`INSERT INTO ${table} VALUES (?, ?, ?, ?)`);
  const changes = insertInto("changes");
  const ofCustomer = { subscription: insertInto("customer_subscriptions"), order: insertInto("customer_orders") };
  const ofContract = insertInto("contract_orders");

  return (shopId, row, changeNumber) => {
    switch (row.kind) {
      case "customer":
        changes.run(shopId, "customers", changeNumber, row.resource.id);
        return;
      case "subscription": {
        const { id, customerId, startedAt } = row.resource;
        changes.run(shopId, "subscriptions", changeNumber, id);
        ofCustomer.subscription.run(shopId, customerId, Date.parse(startedAt), id);
        return;
      }
      case "order": {
        const { id, customerId, contractId, billedAt } = row.resource;
        changes.run(shopId, "orders", changeNumber, id);
        ofCustomer.order.run(shopId, customerId, Date.parse(billedAt), id);
        ofContract.run(shopId, contractId, Date.parse(billedAt), id);
      }
    }
  };
}
