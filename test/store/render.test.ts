import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { Customer, Order, RESOURCES, Subscription } from "../../src/domain/resources.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { MIGRATIONS, type Migration, type SqliteRow } from "../../src/store/sqlite/migrations.ts";
import { addShop, allRows, commit } from "../conformance/fixtures.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { openStoreIn, UPGRADE } from "../support/open-store.ts";
import { customer, order, subscription } from "../support/records.ts";

const schemas = { subscriptions: Subscription, customers: Customer, orders: Order };

/**
 * Rows are stored as they are served. After a change of a list here, existing databases have rows without the change.
 * So add a migration with `render` (src/store/sqlite/migrations.ts), which renders the stored rows again. Test it with
 * a database of the previous version.
 */
test.each([
  [
    "subscriptions",
    "id shopifyId customerId status interval intervalCount sellingPlanId lines nextBillingDate cyclesCompleted startedAt cancelledAt",
  ],
  [
    "customers",
    "id shopifyId email firstName lastName marketingConsent creditsCents loyaltyTier subscriptionCount createdAt",
  ],
  [
    "orders",
    "id shopifyId contractId customerId source cycleNumber status lines subtotalCents discountCents creditsCents totalCents billedAt",
  ],
] as const)(
  "the fields of %s are these, in this order; another field or order needs a migration that renders the stored rows again",
  async (resource, fields) => {
    expect(Object.keys(schemas[resource].properties)).toEqual(fields.split(" "));
    const { store, shop } = await filled(1);
    const [row] = await allRows(store, shop, resource);
    expect(Object.keys(row ?? {})).toEqual(fields.split(" "));
    const { lines } = row ?? {};
    if (Array.isArray(lines))
      expect(Object.keys(lines[0])).toEqual(["variantId", "productId", "title", "quantity", "unitPriceCents"]);
  },
);

/** A database with contracts of two shops, each with its customer and an order. One more customer has no contract. */
async function filled(contracts: number) {
  const folder = temporaryFolder();
  const store = await openStoreIn(folder);
  afterTest(() => store.close());
  const [shop, other] = [await addShop(store, "alpha"), await addShop(store, "beta")];
  for (const each of [shop, other]) {
    const numbers = Array.from({ length: contracts }, (_, n) => n + 1);
    await commit(store, each, [...numbers.flatMap((n) => [subscription(n), order(n, 1)]), customer(contracts + 1)]);
  }
  const db = openDatabase(join(folder, "sds.db"), 2_000, UPGRADE);
  afterTest(() => db.close());
  return { store, shop, other, db };
}

interface Mirrored {
  table: string;
  shopId: number;
  id: string;
  json: string;
  changeNumber: number;
}

function mirrored(db: Database): Mirrored[] {
  const of = (table: string) =>
    db
      .query<Mirrored, []>(
        `SELECT '${table}' AS "table", shop_id AS shopId, id, json, change_number AS changeNumber FROM ${table} ORDER BY shop_id, id`,
      )
      .all();
  return RESOURCES.flatMap(of);
}

function changeCounts(db: Database): number[] {
  return db
    .query<{ n: number }, []>("SELECT change_count AS n FROM shops ORDER BY id")
    .all()
    .map(({ n }) => n);
}

function everything(db: Database): unknown {
  const tables = db
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all();
  const rows = tables
    .filter(({ name }) => !name.startsWith("sqlite_"))
    .map(({ name }) => db.query(`SELECT * FROM ${name}`).all());
  return { tables, rows, version: db.query("PRAGMA user_version").get() };
}

/** Adds a field after the status. A row without a status does not get it. */
function withPhase({ id, shopifyId, customerId, status, ...rest }: SqliteRow): SqliteRow {
  return { id, shopifyId, customerId, status, phase: status === "ACTIVE" ? "RUNNING" : null, ...rest };
}

describe("a migration that renders the stored rows again", () => {
  test("adds the new field to every row, even if there are more rows than one read returns", async () => {
    const { db } = await filled(1_001);
    // 2,001 rows remain, so the last batch has a single row.
    db.run("DELETE FROM subscriptions WHERE id = (SELECT min(id) FROM subscriptions)");
    const before = mirrored(db);
    migrate(db, UPGRADE, [...MIGRATIONS, { sql: "", render: { subscriptions: withPhase } }]);
    const expected = before.map(({ table, json }) =>
      table === "subscriptions" ? json.replace('"ACTIVE",', '"ACTIVE","phase":"RUNNING",') : json,
    );
    expect(mirrored(db).map(({ json }) => json)).toEqual(expected);
    expect(expected.filter((json) => json.includes("phase"))).toHaveLength(2_001);
  });

  test("gives each changed row its shop's next change number, and keeps the numbers of the others", async () => {
    const { db, shop, other } = await filled(30);
    const before = mirrored(db);
    const countsBefore = changeCounts(db);
    const isChanged = ({ table, json }: Mirrored) => table !== "orders" && JSON.parse(json).subscriptionCount !== 0;
    const marked = (row: SqliteRow) => (row["subscriptionCount"] === 0 ? row : { ...row, mark: true });
    migrate(db, UPGRADE, [...MIGRATIONS, { sql: "", render: { subscriptions: marked, customers: marked } }]);

    const after = mirrored(db);
    expect(after.filter((_, index) => !isChanged(before[index] as Mirrored))).toEqual(
      before.filter((row) => !isChanged(row)),
    );
    const changed = after.filter((_, index) => isChanged(before[index] as Mirrored));
    for (const [index, { id }] of [shop, other].entries()) {
      const numbers = changed.filter(({ shopId }) => shopId === id).map(({ changeNumber }) => changeNumber);
      expect(numbers.sort((a, b) => a - b)).toEqual(
        Array.from({ length: 60 }, (_, n) => (countsBefore[index] ?? 0) + n + 1),
      );
    }
    expect(changeCounts(db)).toEqual(countsBefore.map((count) => count + 60));
  });

  test("renders after the SQL of its own migration, and before the next one", async () => {
    const { db } = await filled(1);
    const first: Migration = {
      sql: "UPDATE customers SET json = json_set(json, '$.step', 1)",
      render: { customers: (row) => ({ ...row, step: Number(row["step"]) + 1 }) },
    };
    const second: Migration = { sql: "UPDATE customers SET json = json_set(json, '$.step', json ->> '$.step' * 10)" };
    migrate(db, UPGRADE, [...MIGRATIONS, first, second]);
    const customers = mirrored(db).filter(({ table }) => table === "customers");
    expect(customers.map(({ json }) => JSON.parse(json).step)).toEqual([20, 20, 20, 20]);
  });

  test("reads the rows in the order in which they are stored, so that no batch sorts the table", async () => {
    const { db } = await filled(1);
    const spy = spyOn(Database.prototype, "prepare");
    afterTest(() => spy.mockRestore());
    const same = (row: SqliteRow) => row;
    migrate(db, UPGRADE, [...MIGRATIONS, { sql: "", render: { subscriptions: same, customers: same, orders: same } }]);
    const reads = spy.mock.calls.map(([sql]) => sql).filter((sql) => sql.startsWith("SELECT"));
    spy.mockRestore();
    expect(reads).toHaveLength(3);
    const plans = reads.map((sql) => JSON.stringify(db.query(`EXPLAIN QUERY PLAN ${sql}`).all(0, 0, "")));
    expect(plans.filter((plan) => plan.includes("TEMP B-TREE"))).toEqual([]);
  });

  test("runs once", async () => {
    const { db } = await filled(2);
    let calls = 0;
    const counting = (row: SqliteRow) => {
      calls += 1;
      return { ...row, mark: calls };
    };
    const migrations = [...MIGRATIONS, { sql: "", render: { orders: counting } }];
    migrate(db, UPGRADE, migrations);
    const after = everything(db);
    migrate(db, UPGRADE, migrations);
    expect(calls).toBe(4);
    expect(everything(db)).toEqual(after);
  });

  test("that throws leaves the database unchanged", async () => {
    const { db } = await filled(2);
    const before = everything(db);
    let calls = 0;
    const failing = (row: SqliteRow) => {
      calls += 1;
      if (calls === 3) throw new Error("a row that cannot be rendered");
      return { ...row, mark: calls };
    };
    const migrations = [
      ...MIGRATIONS,
      { sql: "CREATE TABLE made (id TEXT)" },
      { sql: "", render: { orders: failing } },
    ];
    expect(() => migrate(db, UPGRADE, migrations)).toThrow("a row that cannot be rendered");
    expect(everything(db)).toEqual(before);
  });
});
