import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { copyStore } from "../../src/store/copy-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { UPGRADE } from "../support/open-store.ts";
import { openDatabase } from "../support/postgres-connections.ts";
import { readPostgresRows } from "../support/postgres-rows.ts";
import { emptyDatabase, hasPostgres } from "../support/postgres-server.ts";
import { readRows } from "../support/rows.ts";
import { UNFINISHED_BODY, unpackFiles } from "../support/stored-database.ts";
import { unpackDump, unpackPostgres } from "../support/stored-postgres.ts";
import type { Row, Table } from "../support/tables.ts";

setDefaultTimeout(600_000);

/**
 * The numbers of records in the three bodies: `CONTRACTS` contracts of alpha, `NEWER` newer records of some of alpha's
 * customers, and `NEWER` customers of beta.
 */
const CONTRACTS = 350;
const NEWER = 260;

/** A process that opens the database and kills itself at its n-th call for random bytes. */
const KILLED = `
const { openStore } = await import(${JSON.stringify(join(import.meta.dir, "../../src/store/open-store.ts"))});
const [options, nth] = process.argv.slice(1).map((text) => JSON.parse(text));
let asked = 0;
const random = (count) => {
  asked += 1;
  if (asked === nth) process.kill(process.pid, "SIGKILL");
  return crypto.getRandomValues(new Uint8Array(count));
};
if (options.server !== null) options.server.sleep = Bun.sleep;
await openStore({ ...options, now: Date.now, random }).then((store) => store.close());
process.exit();
`;

interface Unfinished {
  /** Options of openStore that can be written as JSON. */
  options: { folder: string; masterKeyFile: string; busyTimeoutMs: 30_000; server: null | { url: string } };
  rows(table: Table): Promise<Row[]>;
  /** Runs a statement on the database directly, without the program. */
  change(sql: string): Promise<void>;
}

async function sqlite(): Promise<Unfinished> {
  const folder = join(temporaryFolder(), "data");
  await unpackFiles(UNFINISHED_BODY, folder);
  return {
    options: { folder, masterKeyFile: join(folder, "master.key"), busyTimeoutMs: 30_000, server: null },
    rows: async (table) => readRows(folder, table),
    async change(sql) {
      const db = new Database(join(folder, "sds.db"));
      db.run(sql);
      db.close(true);
    },
  };
}

async function postgres(): Promise<Unfinished> {
  const [folder, url] = [join(temporaryFolder(), "data"), await emptyDatabase()];
  await unpackDump(UNFINISHED_BODY, url, folder);
  const server = { url, passwordFile: null };
  return {
    options: { folder, masterKeyFile: join(folder, "master.key"), busyTimeoutMs: 30_000, server },
    rows: (table) => readPostgresRows(url, table),
    change: async (sql) => void (await openDatabase(url).run(sql)),
  };
}

async function open({ options: { server, ...options } }: Unfinished): Promise<Store> {
  const store = await openStore({
    ...options,
    ...UPGRADE,
    server: server === null ? null : { ...server, passwordFile: null, sleep: Bun.sleep },
  });
  afterTest(() => store.close());
  return store;
}

/** Opens the database in another process. @returns how it ended */
async function openBeside({ options }: Unfinished, nth: number): Promise<string | number> {
  const child = Bun.spawn([process.execPath, "-e", KILLED, JSON.stringify(options), String(nth)], {
    stderr: "inherit",
  });
  const status = await child.exited;
  return child.signalCode ?? status;
}

/** Expects that each record of the bodies was applied exactly once. */
async function expectApplied({ rows }: Unfinished): Promise<void> {
  const names = new Map<unknown, string[]>();
  for (const { shop_id, json } of await rows("customers")) {
    const { firstName, creditsCents } = JSON.parse(String(json));
    names.set(shop_id, [...(names.get(shop_id) ?? []), `${firstName} ${creditsCents}`]);
  }
  const counts = [...names.values()].map((all) =>
    Object.fromEntries([...Map.groupBy(all, (name) => name)].map(([name, { length }]) => [name, length])),
  );
  expect(counts).toEqual([{ "New 2": NEWER, "Old 1": CONTRACTS - NEWER }, { "Beta 0": NEWER }]);
  expect(await rows("subscriptions")).toHaveLength(CONTRACTS);
  expect(await rows("orders")).toHaveLength(CONTRACTS);
  const charged = (await rows("deliveries")).map(({ body }) => JSON.parse(String(body)).data.order_id);
  expect([charged.length, new Set(charged).size]).toEqual([CONTRACTS, CONTRACTS]);
}

const ENGINES = [{ name: "sqlite", make: sqlite }, ...(hasPostgres() ? [{ name: "postgres", make: postgres }] : [])];

describe.each(ENGINES)("$name: bodies that an earlier version accepted and did not finish", ({ name, make }) => {
  test("are applied in their order when the database is opened, and not again", async () => {
    const unfinished = await make();
    await (await open(unfinished)).close();
    await expectApplied(unfinished);
    const changes = await unfinished.rows("changes");
    await open(unfinished);
    expect(await unfinished.rows("changes")).toEqual(changes);
  });

  test("are applied once by programs that start together", async () => {
    const unfinished = await make();
    const ends = await Promise.all([1, 2, 3].map(() => openBeside(unfinished, Number.MAX_SAFE_INTEGER)));
    expect(ends).toEqual([0, 0, 0]);
    await expectApplied(unfinished);
  });

  test("are applied once after kills at any moment", async () => {
    const unfinished = await make();
    for (const nth of [3, 60, 100, 30]) expect(await openBeside(unfinished, nth)).toBe("SIGKILL");
    await open(unfinished);
    await expectApplied(unfinished);
  });

  test("are not applied to a shop that is being removed", async () => {
    const unfinished = await make();
    await unfinished.change("UPDATE shops SET removal_started_at = 1 WHERE id = 1");
    const before = await unfinished.rows("orders");
    await open(unfinished);
    expect(await unfinished.rows("orders")).toEqual(before);
    expect((await unfinished.rows("customers")).filter(({ shop_id }) => shop_id === 2)).toHaveLength(NEWER);
  });

  test("keep the database from being opened if a record is refused, which is a defect", async () => {
    const unfinished = await make();
    const order = JSON.stringify([
      { type: "order", subscription: "gid://shopify/SubscriptionContract/9999", source: "recurring", cycleNumber: 1 },
    ]);
    await unfinished.change(
      `UPDATE intake_parts SET records = '${order}' WHERE number = (SELECT min(number) FROM intake_parts)`,
    );
    await expect(open(unfinished)).rejects.toThrow(
      "for alpha.myshopify.com cannot be applied: a record, field subscription: names a contract that is not in the " +
        "mirror: gid://shopify/SubscriptionContract/9999; start that version once more, which drops the body",
    );
  });

  test.skipIf(!hasPostgres())("are applied before sds copy copies the database", async () => {
    const unfinished = await make();
    const { folder, server } = unfinished.options;
    const target =
      name === "sqlite" ? { url: await emptyDatabase(), passwordFile: null } : { folder: temporaryFolder() };
    const from = server === null ? { folder } : { ...server, passwordFile: null };
    await copyStore({ from, to: target, ...UPGRADE, sleep: Bun.sleep, onProgress: () => undefined });
    const rows = (table: Table) =>
      "url" in target ? readPostgresRows(target.url, table) : readRows(target.folder, table).slice();
    await expectApplied({ ...unfinished, rows: async (table) => rows(table) });
  });
});

test("a SQLite database has no table of bodies after the upgrade", async () => {
  const unfinished = await sqlite();
  await open(unfinished);
  const db = new Database(join(unfinished.options.folder, "sds.db"), { readonly: true });
  expect(db.query("SELECT name FROM sqlite_schema WHERE name LIKE 'intake%'").all()).toEqual([]);
  db.close();
});

describe.skipIf(!hasPostgres())("a PostgreSQL database that nodes of two versions use", () => {
  test("drops a body that was not stored whole, and then refuses bodies of older nodes", async () => {
    const [folder, url] = [join(temporaryFolder(), "data"), await emptyDatabase()];
    await unpackPostgres(2, url, folder);
    const db = openDatabase(url);
    const bodies = () => db.all("SELECT number FROM intake_bodies UNION ALL SELECT number FROM intake_parts");
    expect((await bodies()).length).toBeGreaterThan(1);
    const store = await openStore({
      folder,
      masterKeyFile: join(folder, "master.key"),
      busyTimeoutMs: 2_000,
      ...UPGRADE,
      server: { url, passwordFile: null, sleep: Bun.sleep },
    });
    afterTest(() => store.close());
    expect(await bodies()).toEqual([]);
    const begin = db.run("INSERT INTO intake_bodies (shop_id, complete, node) VALUES (1, false, 'older')");
    await expect(begin).rejects.toMatchObject({ name: "StoreError", reason: "busy" });
  });
});
