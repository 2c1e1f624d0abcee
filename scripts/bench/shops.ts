import { Database } from "bun:sqlite";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { $, CryptoHasher, Glob } from "bun";
import { decide } from "../../src/domain/decide/change.ts";
import { WITHOUT_FIELDS } from "../../src/domain/decide/snapshot.ts";
import { createShopIds } from "../../src/domain/ids.ts";
import { formatCursor } from "../../src/domain/pages/cursor.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { mirrorRows } from "../../src/store/sqlite/rows.ts";
import { UPGRADE } from "../../test/support/open-store.ts";
import { subscriptionRecords } from "./records.ts";

/** Git ignores this folder. A bench makes missing files again. */
const FOLDER = "dist/bench";
export const SDS = `${FOLDER}/sds`;
const DOMAIN = "bench.myshopify.com";
const ROWS_PER_COMMIT = 10_000;
const CURSORS = 20_000;

/** The tables that an import of subscriptions writes. */
export const WRITTEN_TABLES = ["subscriptions", "customers"] as const;

/** A data folder of sds with one shop in it. */
export interface Shop {
  folder: string;
  key: string;
}

interface Import {
  lines: number;
  seconds: number;
}

/** Copies a folder for a measurement that changes it. @returns the path of the copy */
export function copyFolder(folder: string, copy: string): string {
  rmSync(copy, { recursive: true, force: true });
  cpSync(folder, copy, { recursive: true });
  return copy;
}

export function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

export async function buildProgram(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  await $`bun run build --outfile ${SDS}`.quiet();
}

/** Makes an empty shop. The folder's old content is removed. */
export async function emptyShop(name: string): Promise<Shop> {
  const folder = join(FOLDER, name);
  rmSync(folder, { recursive: true, force: true });
  await $`${SDS} --data ${folder} shop add ${DOMAIN}`.quiet();
  const key = (await $`${SDS} --data ${folder} key create --label bench`.quiet().text()).trim();
  return { folder, key };
}

/** Runs `sds import` as a user does. */
export async function importFile(shop: Shop, file: string): Promise<Import> {
  const start = performance.now();
  const printed = await $`${SDS} --data ${shop.folder} import ${file} --json`.quiet().json();
  return { lines: printed.read, seconds: (performance.now() - start) / 1_000 };
}

/** Writes the records as NDJSON. @returns the path of the file */
export async function recordFile(count: number): Promise<string> {
  const file = join(FOLDER, `subscriptions-${count}.ndjson`);
  // Bun's writer does not truncate an existing file.
  rmSync(file, { force: true });
  const writer = Bun.file(file).writer();
  for (const record of subscriptionRecords(count, "random")) {
    writer.write(`${JSON.stringify(record)}\n`);
    if (record.shopifyId.endsWith("000")) await writer.flush();
  }
  await writer.end();
  return file;
}

/** Fills a shop by `sds import`, which takes a while. Later runs use the same shop. */
export function importedShop(count: number): Promise<Shop & Import> {
  return keep(`imported-${count}`, async (name) => {
    tell(`Importing ${count.toLocaleString("en")} subscriptions, once ...`);
    const file = await recordFile(count);
    const shop = await emptyShop(name);
    const imported = await importFile(shop, file);
    rmSync(file);
    fillBaseline(shop);
    return { ...shop, ...imported };
  });
}

/**
 * Fills a shop with the rows that an import would write. Inserts the rows in the order of the table, because that is
 * quicker.
 */
export function filledShop(count: number): Promise<Shop> {
  return keep(`filled-${count}`, async (name) => {
    tell(`Writing ${count.toLocaleString("en")} subscriptions, once ...`);
    const shop = await emptyShop(name);
    const db = openDatabase(databaseOf(shop), 30_000, UPGRADE);
    // Nothing is synced: if a power cut damages the database, a bench makes it again.
    db.run("PRAGMA synchronous = OFF");
    const index =
      db.query<{ sql: string }, []>("SELECT sql FROM sqlite_schema WHERE name = 'subscriptions_by_id'").get()?.sql ??
      "";
    const rows = mirrorRows(db);
    db.run("DROP INDEX subscriptions_by_id");
    const shopId = db.query<{ id: number }, []>("SELECT id FROM shops").get()?.id ?? 0;
    let changes = 0;
    db.run("BEGIN IMMEDIATE");
    for (const row of subscriptionRows(count)) {
      changes += 1;
      rows.write(shopId, [{ row, isNew: true, changeNumber: changes }]);
      if (changes % ROWS_PER_COMMIT === 0) db.run("COMMIT; BEGIN IMMEDIATE");
    }
    db.run("COMMIT");
    db.run(index);
    db.run("UPDATE shops SET change_count = ?", [changes]);
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
    return shop;
  });
}

export function databaseOf(shop: Shop): string {
  return join(shop.folder, "sds.db");
}

export function baselineOf(shop: Shop): string {
  return join(shop.folder, "baseline.db");
}

/** Makes a file of paths to random pages and returns its name. */
export function randomPages(shop: Shop, limit: number): string {
  // Ids are hashes, so the rows with the first ids are a random sample.
  return pathFile(shop, `random-${limit}`, limit, "ORDER BY id", CURSORS);
}

export function firstPage(shop: Shop, limit: number): string {
  return writePaths(shop, `first-${limit}`, [pagePath(limit)]);
}

/** Makes a file with the path to the last full page. */
export function lastPage(shop: Shop, limit: number): string {
  return pathFile(shop, `last-${limit}`, limit, `ORDER BY started_at, id LIMIT 1 OFFSET ${limit}`, 1);
}

/** Makes a file of paths to single rows. */
export function randomRows(shop: Shop): string {
  const db = new Database(databaseOf(shop), { readonly: true });
  const rows = db.query<{ id: string }, []>(`SELECT id FROM subscriptions ORDER BY id LIMIT ${CURSORS}`).all();
  db.close();
  return writePaths(
    shop,
    "rows",
    rows.map(({ id }) => `/api/v1/subscriptions/${id}`),
  );
}

/** Makes a file with this one path. */
export function onePath(shop: Shop, name: string, path: string): string {
  return writePaths(shop, name, [path]);
}

function pathFile(shop: Shop, name: string, limit: number, order: string, count: number): string {
  const db = new Database(databaseOf(shop), { readonly: true });
  const rows = db
    .query<{ at: number; id: string }, []>(
      `SELECT * FROM (SELECT started_at AS at, id FROM subscriptions ${order}) LIMIT ${count}`,
    )
    .all();
  db.close();
  return writePaths(
    shop,
    name,
    rows.map((row) => pagePath(limit, formatCursor(row))),
  );
}

function writePaths(shop: Shop, name: string, paths: string[]): string {
  const file = join(shop.folder, `${name}.paths`);
  writeFileSync(file, `${paths.join("\n")}\n`);
  return file;
}

function pagePath(limit: number, cursor?: string): string {
  return `/api/v1/subscriptions?limit=${limit}${cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
}

/**
 * Yields the rows of subscriptions that the mirror would store. Customers are left out, because no bench reads them.
 */
function* subscriptionRows(count: number) {
  const nothing = {
    ids: createShopIds(DOMAIN),
    changeCount: 0,
    customer: () => undefined,
    subscription: () => undefined,
    order: () => undefined,
    hasOccurrence: () => false,
    ...WITHOUT_FIELDS,
  };
  for (const record of subscriptionRecords(count, "dated")) {
    const decision = decide(nothing, record, 0);
    const row = "rows" in decision ? decision.rows.find(({ kind }) => kind === "subscription") : undefined;
    if (row !== undefined) yield row;
  }
}

/** Copies the rows of an import into a second database in its folder, in the order of the import. */
export function writtenRows(shop: Shop): { file: string; count: number; changes: number } {
  const file = join(shop.folder, "rows.db");
  const db = new Database(file, { create: true, strict: true });
  db.run("PRAGMA synchronous = OFF");
  db.run("ATTACH ? AS sds", [databaseOf(shop)]);
  for (const table of WRITTEN_TABLES) {
    db.run(`CREATE TABLE ${table} AS SELECT * FROM sds.${table} ORDER BY change_number`);
    db.run(`CREATE INDEX ${table}_by_change ON ${table} (change_number)`);
  }
  const counts = db.query<{ count: number; changes: number }, []>(
    "SELECT (SELECT count(*) FROM main.subscriptions) + (SELECT count(*) FROM main.customers) AS count, change_count AS changes FROM shops",
  );
  const { count, changes } = counts.get() ?? { count: 0, changes: 0 };
  db.close();
  return { file, count, changes };
}

/** Writes the same shop into the database of baseline/server.js. */
function fillBaseline(shop: Shop): void {
  const db = new Database(baselineOf(shop), { create: true, strict: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = OFF");
  db.run(
    "CREATE TABLE api_keys (id INTEGER PRIMARY KEY, shop_id INTEGER NOT NULL, hash BLOB NOT NULL UNIQUE, revoked_at TEXT)",
  );
  db.run(`CREATE TABLE subscriptions (
    id TEXT PRIMARY KEY, shop_id INTEGER NOT NULL, shopify_id TEXT NOT NULL, customer_id TEXT NOT NULL, status TEXT NOT NULL, interval TEXT NOT NULL,
    interval_count INTEGER NOT NULL, selling_plan_id TEXT, lines TEXT NOT NULL, next_billing_date TEXT, cycles_completed INTEGER NOT NULL,
    started_at TEXT NOT NULL, cancelled_at TEXT)`);
  db.run("CREATE INDEX subscriptions_by_start ON subscriptions (shop_id, started_at, id)");
  db.run("ATTACH ? AS sds", [databaseOf(shop)]);
  db.run("INSERT INTO api_keys (shop_id, hash) SELECT shop_id, hash FROM sds.api_keys");
  const fields =
    "id shopifyId customerId status interval intervalCount sellingPlanId lines nextBillingDate cyclesCompleted startedAt cancelledAt";
  const values = fields.split(" ").map((field) => `json ->> '${field}'`);
  // Inserted in the order of the import.
  db.run(`INSERT INTO subscriptions (shop_id, id, shopify_id, customer_id, status, interval, interval_count, selling_plan_id, lines,
    next_billing_date, cycles_completed, started_at, cancelled_at) SELECT shop_id, ${values} FROM sds.subscriptions ORDER BY change_number`);
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

/** Makes a shop once; later runs reuse it. After a change of `sources` below, the shop is made again. */
async function keep<T extends Shop>(name: string, make: (name: string) => Promise<T>): Promise<T> {
  const file = join(FOLDER, name, "made.json");
  const sources = [
    import.meta.path,
    join(import.meta.dir, "records.ts"),
    "src/store/sqlite/database.ts",
    ...new Glob("src/store/sqlite/migrations/*.sql").scanSync("."),
  ];
  const madeFrom = sources
    .sort()
    .reduce((hasher, source) => hasher.update(readFileSync(source)), new CryptoHasher("sha256"))
    .digest("hex");
  const kept = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
  if (kept?.madeFrom === madeFrom) return kept.made;
  const made = await make(name);
  writeFileSync(file, JSON.stringify({ madeFrom, made }));
  return made;
}
