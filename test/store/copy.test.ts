import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { SPAN_MS } from "../../src/domain/decide/commit.ts";
import { BATCH_BYTES } from "../../src/store/copy/copy.ts";
import { COPIED_TABLES, type CopiedTable, KEPT_BY_TRIGGERS, NOT_COPIED, placeIn } from "../../src/store/copy/tables.ts";
import { copyStore } from "../../src/store/copy-store.ts";
import { parseServerAddress } from "../../src/store/postgres/address.ts";
import { openPostgresSource } from "../../src/store/postgres/copy-source.ts";
import { beginLong } from "../../src/store/postgres/long-transaction.ts";
import { rowsText } from "../../src/store/sqlite/copy-side.ts";
import { openSqliteSource } from "../../src/store/sqlite/copy-source.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { openStoreIn, UPGRADE } from "../support/open-store.ts";
import { readPostgresRows } from "../support/postgres-rows.ts";
import { emptyDatabase, hasPostgres } from "../support/postgres-server.ts";
import { customer } from "../support/records.ts";
import { readRows } from "../support/rows.ts";
import { expectStoredAnswers, openOnPostgres } from "../support/stored-answers.ts";
import { storedVersions, unpack } from "../support/stored-database.ts";
import { TABLE_NAMES } from "../support/tables.ts";

const STAYING: string[] = [...NOT_COPIED, ...KEPT_BY_TRIGGERS];
const COPIED = TABLE_NAMES.filter((table) => !STAYING.includes(table));

/** Makes a data folder with the newest stored database, and upgrades it. */
async function storedFolder() {
  const data = join(temporaryFolder(), "data");
  const answers = await unpack(storedVersions().at(-1) ?? 0, data);
  await (await openStoreIn(data)).close();
  return { data, answers };
}

type Place = Parameters<typeof copyStore>[0]["to"];

const atServer = (url: string): Place => ({ url, passwordFile: null });

function copy(from: Place, to: Place): Promise<{ rows: number }> {
  return copyStore({ from, to, ...UPGRADE, sleep: Bun.sleep, onProgress: () => undefined });
}

/** Changes a folder's database in a way that the program never does. */
function change(data: string, ...statements: string[]): void {
  const db = new Database(join(data, "sds.db"), { readwrite: true, create: false });
  for (const statement of statements) db.run(statement);
  db.close(true);
}

/** Copies a stored data folder to a new PostgreSQL database, after statements have changed the folder. */
async function copiedToServer(...statements: string[]) {
  const { data, answers } = await storedFolder();
  change(data, ...statements);
  const url = await emptyDatabase();
  const { rows } = await copy({ folder: data }, atServer(url));
  return { data, answers, url, rows };
}

/** Reads all rows of a table, in the order of its primary key. */
function allRows(data: string, table: string): unknown[] {
  using db = new Database(join(data, "sds.db"), { readonly: true });
  return db.query(`SELECT * FROM ${table}`).all();
}

async function ask<T>(url: string, text: string): Promise<T[]> {
  const sql = new SQL(url, { max: 1 });
  try {
    return Array.from((await sql.unsafe(text)) as T[]);
  } finally {
    await sql.close();
  }
}

/** Lists the copied columns of an engine's tables: `table column kind`. */
function listed(engine: "sqlite" | "postgres", types: Record<string, string>): string[] {
  const columns = COPIED_TABLES.flatMap((table) => {
    const { stored, written, filled } = placeIn(engine, table);
    return [
      ...written.map(({ column }) => `${stored} ${column} ${types[table.columns[column] ?? ""]}`),
      ...filled.map(({ column, value }) => `${stored} ${column} ${value.startsWith("'") ? "text" : types["number"]}`),
    ];
  });
  return [...new Set(columns)].sort();
}

describe("the list of what is copied", () => {
  test("has every column of every SQLite table, with its type", async () => {
    const folder = temporaryFolder();
    await (await openStoreIn(folder)).close();
    const db = new Database(join(folder, "sds.db"), { readonly: true });
    const real = db
      .query<{ text: string }, []>(
        `SELECT t.name || ' ' || c.name || ' ' || c.type AS text FROM pragma_table_list AS t, pragma_table_info(t.name) AS c
         WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'`,
      )
      .all()
      .map(({ text }) => text)
      .filter((text) => !STAYING.some((table) => text.startsWith(`${table} `)));
    const types = { number: "INTEGER", flag: "INTEGER", text: "TEXT", bytes: "BLOB" };
    expect(listed("sqlite", types)).toEqual(real.sort());
    const sorting = COPIED_TABLES.filter((table) =>
      JSON.stringify(db.query(`EXPLAIN QUERY PLAN ${rowsText(table)}`).all()).includes("TEMP B-TREE"),
    );
    db.close();
    expect(sorting.map(({ name }) => name)).toEqual([]);
  });

  test.skipIf(!hasPostgres())("has every column of every PostgreSQL table, with its type", async () => {
    const { url } = await copiedToServer();
    const real = await ask<{ table_name: string; column_name: string; data_type: string }>(
      url,
      `SELECT table_name, column_name, data_type FROM information_schema.columns
       WHERE table_schema = 'public' AND is_generated = 'NEVER'`,
    );
    const types = { number: "bigint", flag: "boolean", text: "text", bytes: "bytea" };
    expect(listed("postgres", types)).toEqual(
      real
        .filter(({ table_name }) => !STAYING.includes(table_name))
        .map(({ table_name, column_name, data_type }) => `${table_name} ${column_name} ${data_type}`)
        .sort(),
    );
    const indexes = await ask<{ def: string }>(
      url,
      "SELECT indexdef AS def FROM pg_indexes WHERE schemaname = 'public'",
    );
    const unordered = COPIED_TABLES.filter((table) => {
      const { stored, order } = placeIn("postgres", table);
      return !indexes.some(({ def }) => def.includes(`public.${stored} USING btree (${order.join(", ")})`));
    });
    expect(unordered.map(({ name }) => name)).toEqual([]);
  });
});

describe.skipIf(!hasPostgres())("a copy", () => {
  test("to PostgreSQL and back keeps every row of every table, and never reuses a number", async () => {
    const { data, url, rows } = await copiedToServer(
      // The row with the highest number was deleted. The next number must still be higher.
      "DELETE FROM deliveries WHERE number = (SELECT max(number) FROM deliveries)",
      "UPDATE sqlite_sequence SET seq = 900 WHERE name = 'inbox'",
    );
    const back = join(temporaryFolder(), "back");
    expect(await copy(atServer(url), { folder: back })).toMatchObject({ rows });
    expect(rows).toBe(COPIED.reduce((sum, table) => sum + readRows(data, table).length, 0));
    let filled = 0;
    for (const table of COPIED) {
      const original = readRows(data, table);
      if (original.length > 0) filled += 1;
      expect(readRows(back, table)).toEqual(original);
      const there = await readPostgresRows(url, table);
      const own = ["application", "schema"];
      expect(there.filter(({ name }) => table !== "meta" || !own.includes(String(name)))).toEqual(original);
    }
    expect(filled).toBeGreaterThan(22);
    // The stored database has a shop that came from another database, and a shop that moved to another one.
    expect(readRows(data, "checkpoint_origins")).not.toEqual([]);
    expect(readRows(data, "shop_moves")).not.toEqual([]);
    const kept = (folder: string) =>
      KEPT_BY_TRIGGERS.filter((table) => table !== "delivery_subjects").map((table) => allRows(folder, table));
    expect(kept(data).filter((found) => found.length === 0)).toEqual([]);
    const subjects = await ask(url, "SELECT number FROM delivery_subjects");
    const ofPeople = ["loyalty.reward_earned", "streak-milestone-reached"];
    const withSubject = readRows(data, "deliveries").filter(
      ({ topic, body }) =>
        ofPeople.includes(String(topic)) || String(body).includes('"gid://shopify/SubscriptionContract/'),
    );
    expect(subjects).toHaveLength(withSubject.length);
    expect(kept(back)).toEqual(kept(data));
    const numbers = (folder: string) => {
      const db = new Database(join(folder, "sds.db"), { readonly: true });
      const all = db
        .query<{ name: string; seq: number }, []>("SELECT name, seq FROM sqlite_sequence ORDER BY name")
        .all();
      db.close();
      return all.filter(({ seq }) => seq > 0);
    };
    expect(numbers(back)).toEqual(numbers(data));
    const next = async (table: string) =>
      (await ask<{ n: string }>(url, `SELECT nextval(pg_get_serial_sequence('${table}', 'number')) AS n`))[0]?.n;
    expect(await next("inbox")).toBe("901");
    expect(Number(await next("deliveries"))).toBe(
      (numbers(data).find(({ name }) => name === "deliveries")?.seq ?? 0) + 1,
    );
    expect(await ask(url, "SELECT id FROM orders WHERE gid IS DISTINCT FROM json::json->>'shopifyId'")).toEqual([]);
  });

  test("answers like the original, with the original's keys and cursors", async () => {
    const { data, answers, url } = await copiedToServer();
    expect(answers.requests.some(({ path }) => path.includes("cursor="))).toBeTrue();
    await expectStoredAnswers(await openOnPostgres(url, data), answers);
  });

  test("back from PostgreSQL keeps changes that a node of the previous version made", async () => {
    const { data, answers, url } = await copiedToServer();
    const back = join(temporaryFolder(), "back");
    // A node of an older version counts changes, but does not store their times.
    await ask(url, "UPDATE shop_changes SET change_count = change_count + 1 WHERE shop_id = 1");
    await copy(atServer(url), { folder: back });
    copyFileSync(join(data, "master.key"), join(back, "master.key"));
    const store = await openStoreIn(back);
    afterTest(() => store.close());
    const spans = readRows(back, "change_spans").filter(({ shop_id }) => shop_id === 1);
    const last = Math.max(...spans.map(({ span }) => Number(span)));
    const since = (last + 2) * SPAN_MS;
    expect(await store.pages.changeBefore(1, since)).toBe(0);
    expect(await store.pages.changeBefore(2, since)).toBeGreaterThan(0);
    // A change after the copy can fall into the same span as the copy's last change. This one does.
    const domain = answers.shops[0]?.domain ?? "";
    const shop = { id: 1, domain, firstDomain: domain };
    const records = [customer(9_000, { email: "new@example.com" })];
    const [result] = await store.mirror.applyRecords([{ shop, records }], last * SPAN_MS + 1, []);
    expect(result).toMatchObject({ changed: 1 });
    expect(await store.pages.changeBefore(1, (last + 1) * SPAN_MS)).toBe(0);
  });

  test("to PostgreSQL accepts a later change in the half minute that the copy has noted already", async () => {
    const { data, answers, url } = await copiedToServer("UPDATE shops SET change_span = 0 WHERE id = 1");
    const spans = readRows(data, "change_spans").filter(({ shop_id }) => shop_id === 1);
    const last = Math.max(...spans.map(({ span }) => Number(span)));
    const store = await openOnPostgres(url, data);
    const domain = answers.shops[0]?.domain ?? "";
    const shop = { id: 1, domain, firstDomain: domain };
    const records = [customer(9_000, { email: "new@example.com" })];
    const [result] = await store.store.mirror.applyRecords([{ shop, records }], last * SPAN_MS + 1, []);
    expect(result).toMatchObject({ changed: 1 });
  });

  test("includes the first domain of a renamed shop, from which its ids are derived", async () => {
    const renamed = "UPDATE shops SET first_domain = domain, domain = 'renamed.myshopify.com' WHERE id = 1";
    const { data, answers, url } = await copiedToServer(renamed);
    const { shops } = (await openOnPostgres(url, data)).store;
    const [first] = await Promise.all([shops.find(answers.shops[0]?.domain ?? ""), shops.list()]);
    expect(first).toMatchObject({ id: 1, domain: "renamed.myshopify.com", firstDomain: answers.shops[0]?.domain });
    expect((await shops.intakeSecret("renamed.myshopify.com"))?.secret).toStartWith("intake_");
  });

  test("includes a shop whose removal has begun, with its remaining rows", async () => {
    const { data, url } = await copiedToServer("UPDATE shops SET removal_started_at = 5 WHERE id = 1");
    const back = join(temporaryFolder(), "back");
    await copy(atServer(url), { folder: back });
    for (const table of COPIED) expect(readRows(back, table)).toEqual(readRows(data, table));
  });

  test("names the row with a character that PostgreSQL cannot store, and leaves an unusable target", async () => {
    const { data } = await storedFolder();
    change(data, "UPDATE api_keys SET label = 'a' || char(0) || 'b' WHERE id = (SELECT min(id) FROM api_keys)");
    const id = readRows(data, "api_keys")
      .map((row) => String(row["id"]))
      .sort()[0];
    const url = await emptyDatabase();
    await expect(copy({ folder: data }, atServer(url))).rejects.toMatchObject({
      code: "failed",
      message: expect.stringContaining(
        `the row id "${id}" of the table api_keys has the character U+0000 in label, which PostgreSQL cannot store`,
      ),
    });
    await expect(copy(atServer(url), { folder: join(temporaryFolder(), "back") })).rejects.toMatchObject({
      code: "failed",
      message: expect.stringContaining("has an unfinished copy"),
    });
    expect(await readPostgresRows(url, "shops")).toEqual([]);
  });

  test("writes nothing outside of its transaction when the connection is lost", async () => {
    const url = await emptyDatabase();
    const tx = await beginLong(parseServerAddress(url, null), "ISOLATION LEVEL READ COMMITTED");
    afterTest(() => tx.close());
    const [own] = await tx.all<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    await ask(url, `SELECT pg_terminate_backend(${own?.pid})`);
    const lost = expect.objectContaining({ code: "failed", message: expect.stringContaining("connection was lost") });
    await expect(tx.all("CREATE TABLE first (n int)")).rejects.toEqual(lost);
    await expect(tx.all("CREATE TABLE second (n int)")).rejects.toMatchObject({ code: "failed" });
    await expect(tx.commit()).rejects.toMatchObject({ code: "failed" });
    expect(await ask(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).toEqual([]);
  });

  test("reads large rows a few at a time, from both engines", async () => {
    const { data, url } = await copiedToServer(
      `INSERT INTO customers (shop_id, created_at, id, json, change_number)
       WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
       SELECT 1, i, 'cus_large' || i, '{"pad":"' || hex(randomblob(131072)) || '"}', i FROM n`,
    );
    const customers = COPIED_TABLES.find(({ name }) => name === "customers") as CopiedTable;
    for (const side of [
      await openSqliteSource(data, UPGRADE),
      await openPostgresSource({ address: parseServerAddress(url, null), ...UPGRADE, sleep: Bun.sleep }),
    ]) {
      const sizes: number[] = [];
      const batches = side.batches(customers);
      for (let { value } = await batches.next(); value !== undefined; { value } = await batches.next())
        sizes.push(value.reduce((sum, row) => sum + JSON.stringify(row).length, 0));
      await side.close();
      expect(sizes.length).toBeGreaterThan(6);
      expect(Math.max(...sizes)).toBeLessThan(BATCH_BYTES + 400_000);
    }
  });
});
