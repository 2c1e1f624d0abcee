import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CryptoHasher, Glob } from "bun";
import { openStore } from "../../src/store/open-store.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { failures } from "../conformance/fixtures.ts";
import { randomBytes, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { openStoreIn, UPGRADE } from "../support/open-store.ts";

function open(folder: string) {
  return openStoreIn(folder);
}

async function made(): Promise<string> {
  const folder = join(temporaryFolder(), "data");
  await (await open(folder)).close();
  return folder;
}

/** Expects that opening fails, with a message for the operator. */
async function refuses(opening: Promise<unknown>, message: string | RegExp): Promise<void> {
  const expected = typeof message === "string" ? expect.stringContaining(message) : expect.stringMatching(message);
  expect((await failures([opening]))[0]).toMatchObject({ name: "SdsError", code: "failed", message: expected });
}

function look<T>(folder: string, run: (db: Database) => T): T {
  const db = new Database(join(folder, "sds.db"));
  try {
    return run(db);
  } finally {
    db.close();
  }
}

test("only the owner of the process can read the folder and the master key", async () => {
  const folder = await made();
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(folder, "master.key")).mode & 0o777).toBe(0o600);
});

test("the database has a write-ahead log", async () => {
  const folder = await made();
  expect(look(folder, (db) => db.query("PRAGMA journal_mode").get())).toEqual({ journal_mode: "wal" });
});

test("a connection syncs each commit to the disk, checks foreign keys and overwrites deleted bytes", () => {
  const db = openDatabase(join(temporaryFolder(), "sds.db"), 30_000, UPGRADE);
  afterTest(() => db.close());
  const settingsOf = ["synchronous", "foreign_keys", "secure_delete", "busy_timeout"].map(
    (name) => Object.values(db.query(`PRAGMA ${name}`).get() ?? {})[0],
  );
  expect(settingsOf).toEqual([2, 1, 1, 30_000]);
});

test("a checkpoint empties the write-ahead log, and does not wait while another process reads", async () => {
  const folder = temporaryFolder();
  const store = await open(folder);
  afterTest(() => store.close());
  const sizeOfLog = () => statSync(join(folder, "sds.db-wal")).size;
  await store.shops.add({ domain: "alpha.example.com", plan: "pro", currency: "USD" }, 0);
  expect(sizeOfLog()).toBeGreaterThan(0);
  await store.checkpoint();
  expect(sizeOfLog()).toBe(0);

  await store.shops.add({ domain: "beta.example.com", plan: "pro", currency: "USD" }, 0);
  const reader = new Database(join(folder, "sds.db"));
  afterTest(() => reader.close());
  reader.run("BEGIN");
  reader.query("SELECT * FROM shops").all();
  await store.shops.add({ domain: "gamma.example.com", plan: "pro", currency: "USD" }, 0);
  // If the checkpoint waited for the reader, it would take two seconds every time.
  await eventually(async () => {
    const start = performance.now();
    await store.checkpoint();
    return performance.now() - start < 1_500;
  });
  expect(sizeOfLog()).toBeGreaterThan(0);
});

test("all tables are STRICT, and the mirror's tables are stored in the order in which pages read them", async () => {
  const folder = await made();
  const tables = look(folder, (db) =>
    db
      .query<{ name: string; strict: number; wr: number }, []>(
        "SELECT name, strict, wr FROM pragma_table_list WHERE schema = 'main'",
      )
      .all(),
  );
  const ours = tables.filter(({ name }) => !name.startsWith("sqlite_"));
  expect(ours.filter(({ strict }) => strict === 0)).toEqual([]);
  expect(
    ours
      .filter(({ wr }) => wr === 0)
      .map(({ name }) => name)
      .sort(),
  ).toEqual([
    "admin_notices",
    "alert_addresses",
    "alert_notices",
    "audit",
    "connections",
    "custom_fields",
    "deliveries",
    "inbox",
    "order_stages",
    "shops",
    "uninstallations",
    "webhook_endpoints",
    "widget_styles",
  ]);
});

test("no table takes a row of a shop that is being removed, except large tables, whose writers check the mark", async () => {
  const folder = await made();
  const guarded = look(folder, (db) =>
    db
      .query<{ name: string; trigger: number }, []>(
        `SELECT name, EXISTS (SELECT 1 FROM sqlite_schema AS t WHERE t.type = 'trigger' AND t.tbl_name = tables.name
           AND t.sql LIKE '%BEFORE INSERT%removal_started_at IS NOT NULL%RAISE(ABORT%') AS trigger
         FROM pragma_table_list AS tables
         WHERE EXISTS (SELECT 1 FROM pragma_table_info(tables.name) WHERE name = 'shop_id') ORDER BY name`,
      )
      .all(),
  );
  expect(guarded.filter(({ trigger }) => trigger === 0).map(({ name }) => name)).toEqual([
    "attempts",
    "change_spans",
    "changes",
    "checkpoint_origins",
    "contract_orders",
    "contract_reads",
    "customer_orders",
    "customer_subscriptions",
    "customers",
    "deliveries",
    "delivery_counts",
    "former_branches",
    "inbox",
    "occurrences",
    "orders",
    "platform_webhooks",
    "shop_moves",
    "staged_order_lines",
    "staged_orders",
    "subscription_fields",
    "subscriptions",
    "unsent_events",
  ]);
});

test("a newer database is refused and left as it was", async () => {
  const folder = await made();
  look(folder, (db) => db.run("PRAGMA user_version = 99"));
  const before = await Bun.file(join(folder, "sds.db")).bytes();
  await refuses(open(folder), "was written by a newer sds (schema 99");
  expect(await Bun.file(join(folder, "sds.db")).bytes()).toEqual(before);
});

test("another program's database is refused and left as it was", async () => {
  const folder = temporaryFolder();
  look(folder, (db) => db.run("CREATE TABLE theirs (a)"));
  const before = await Bun.file(join(folder, "sds.db")).bytes();
  await refuses(open(folder), "is a database of another program");
  expect(await Bun.file(join(folder, "sds.db")).bytes()).toEqual(before);
});

test("a file that is not a database is refused", async () => {
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, "sds.db"),
    "not a database, but long enough to have a header that could be one".repeat(20),
  );
  await refuses(open(folder), /cannot open the database .*sds\.db: file is not a database/);
});

test("a data folder that cannot be made is refused", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "file"), "");
  await refuses(open(join(folder, "file")), "cannot use the data folder");
  await refuses(open(join(folder, "file", "below")), "cannot use the data folder");
});

test("a missing or different master key is refused, because it could not open the stored secrets", async () => {
  const folder = await made();
  const key = join(folder, "master.key");
  const kept = await Bun.file(key).text();
  await Bun.file(key).delete();
  await refuses(open(folder), "is missing, and stored secrets need it");
  writeFileSync(key, `${"0".repeat(64)}\n`);
  await refuses(open(folder), "is not the one that stored secrets were encrypted with");
  writeFileSync(key, "short");
  await refuses(open(folder), "it should hold 64 hexadecimal digits; put it back from your backup; if it is lost");
  writeFileSync(key, kept);
  await (await open(folder)).close();
});

test("many programs that open a new folder at once make one schema and one master key", async () => {
  const folder = join(temporaryFolder(), "data");
  mkdirSync(folder);
  const stores = await Promise.all(Array.from({ length: 8 }, () => open(folder)));
  for (const [index, store] of stores.entries())
    await store.shops.add({ domain: `s${index}.example.com`, plan: "pro", currency: "USD" }, 0);
  for (const store of stores)
    expect(await store.shops.intakeSecret("s0.example.com")).toEqual(
      (await stores[0]?.shops.intakeSecret("s0.example.com")) as never,
    );
  for (const store of stores) await store.close();
});

test("a database that was sealed with another key in the meantime is refused", async () => {
  const folder = join(temporaryFolder(), "data");
  await refuses(
    openStore({
      folder,
      masterKeyFile: join(folder, "master.key"),
      busyTimeoutMs: 2_000,
      now: Date.now,
      random(bytes) {
        look(folder, (db) => db.run("INSERT OR IGNORE INTO meta (name, value) VALUES ('master_key', 'another')"));
        return randomBytes(bytes);
      },
    }),
    "is not the one that stored secrets were encrypted with",
  );
});

test("migrations that a database in the field may have run are not changed: add a new one", async () => {
  const folder = join(import.meta.dir, "../../src/store/sqlite/migrations");
  const hashes = await Promise.all(
    [...new Glob("*.sql").scanSync(folder)].sort().map(
      async (name) =>
        `${name} ${new CryptoHasher("sha256")
          .update(await Bun.file(join(folder, name)).text())
          .digest("hex")
          .slice(0, 16)}`,
    ),
  );
  expect(hashes).toEqual([
    "0001_mirror.sql d88dc43f13395204",
    "0002_deliveries.sql 011f0af7529c8de9",
    "0003_platform.sql 19773fc00012abc9",
    "0004_admin.sql a2808f544aa3db08",
    "0005_names_and_counts.sql 301150cd589f55d5",
    "0006_removal_bodies_and_pace.sql 7d419ade37bad261",
    "0007_reads_and_data_requests.sql c4f793f9ab954192",
    "0008_settings_page.sql 69d0ea18ed5dc1ee",
    "0009_changes_and_overlap.sql 26780616fd262362",
    "0011_new_rows_without_triggers.sql ad7b6a7cfe78a6f0",
    "0012_custom_fields_and_style.sql 3e48f8422abd7028",
    "0013_redactions.sql 5760e423307e699a",
    "0014_exchange_rates.sql bcc56448cf6ae85b",
    "0015_queues_and_connections.sql 383685d3de9a588b",
    "0016_renewals_and_installation.sql 6860da04b2e461bc",
    "0017_audit_and_alerts.sql a4ecd5617a34fe8c",
    "0018_unsent_events.sql 2f93a88263736b5d",
    "0019_shop_moves_and_loads.sql 68e07bffe5efb469",
  ]);
});
