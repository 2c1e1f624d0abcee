import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { parseServerAddress } from "../../../src/store/postgres/address.ts";
import { connectionSettings } from "../../../src/store/postgres/connect.ts";
import type { Database, Queries } from "../../../src/store/postgres/database.ts";
import { checkServer } from "../../../src/store/postgres/server-check.ts";
import { addShop, failures, removeShop } from "../../conformance/fixtures.ts";
import { temporaryFolder } from "../../support/app.ts";
import { hasPgBouncer, startPgBouncer } from "../../support/pgbouncer.ts";
import { openDatabase } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { openStoreAt } from "../../support/postgres-store.ts";

const canRun = hasPostgres() && hasPgBouncer();
/** Makes the pooler accept all settings of a connection and ignore them. */
const ignore_startup_parameters = Object.keys(
  connectionSettings({
    address: parseServerAddress("postgres://sds@localhost/x", null),
    deadlineMs: 1,
    isPooled: false,
  }),
).join(", ");

const kindOf = (url: string) => checkServer(parseServerAddress(url, null), 5_000, Date.now);

/** Two nodes select numbers, each with its own statements. @returns how many answers belonged to another statement */
async function wrongAnswers(nodes: readonly Database[]): Promise<number> {
  const statements = [
    "SELECT $1::bigint::float8 AS value, 0 AS kind",
    "SELECT 1 AS kind, ($1::bigint + 0)::float8 AS value",
    "SELECT ($1::bigint)::float8 AS value, 2 AS kind, pg_sleep($2::float8)",
  ];
  let wrong = 0;
  const ask = async (db: Queries, number: number) => {
    const kind = number % statements.length;
    const parameters = kind === 2 ? [number, 0.001] : [number];
    const row = await db.get<{ value: number; kind: number }>(statements[kind] ?? "", parameters);
    if (row?.value !== number || row.kind !== kind) wrong += 1;
  };
  const askMany = async (db: Database, first: number) => {
    for (let number = first; number < first + 30; number += 1) {
      if (number % 5 > 0) await ask(db, number);
      else await db.transaction(async (tx) => void (await Promise.all([ask(tx, number), ask(tx, number + 1)])));
    }
  };
  await Promise.all(nodes.flatMap((db, node) => [0, 1, 2, 3].map((n) => askMany(db, node * 10_000 + n * 100))));
  return wrong;
}

describe.skipIf(!hasPostgres())("a PostgreSQL server without a pooler", () => {
  test("is recognised, also while others use it", async () => {
    const url = await emptyDatabase();
    const other = openDatabase(url);
    const busy = Promise.all([1, 2, 3].map(() => other.get("SELECT pg_sleep($1::float8)", [0.1])));
    expect(await Promise.all([kindOf(url), kindOf(url)])).toEqual([{ isPooled: false }, { isPooled: false }]);
    await busy;
  });
});

describe.skipIf(!canRun)("PgBouncer (skipped where it is not installed)", () => {
  for (const [mode, settings] of [
    ["transaction", {}],
    ["transaction", { ignore_startup_parameters }],
    ["transaction", { ignore_startup_parameters, server_round_robin: "1" }],
    ["session", {}],
    ["session", { ignore_startup_parameters }],
  ] as const) {
    const named = Object.keys(settings).join(" and ");
    test(`in ${mode} mode${named && ` with ${named}`} is found, and works without prepared statements`, async () => {
      const direct = await emptyDatabase();
      const pool_size = mode === "session" ? "40" : "3";
      const url = await startPgBouncer(direct, { pool_mode: mode, default_pool_size: pool_size, ...settings });
      expect(await kindOf(url)).toEqual({ isPooled: true });
      const nodes = [1, 2].map(() => openDatabase(url, { isPooled: true, deadlineMs: 10_000 }));
      expect(await wrongAnswers(nodes)).toBe(0);
      const limit = await nodes[0]?.get<{ value: string }>("SELECT current_setting('statement_timeout') AS value");
      expect(limit).toEqual({ value: "8s" });
      // The limits end with the transaction, so other users of the connection keep their own settings.
      const plain = openDatabase(direct).get<{ value: string }>("SELECT current_setting($1::text) AS value", [
        "statement_timeout",
      ]);
      expect(await plain).toEqual({ value: "4s" });
    });
  }

  test("in transaction mode is recognised while others use it", async () => {
    const direct = await emptyDatabase();
    const settings = { pool_mode: "transaction", default_pool_size: "6", ignore_startup_parameters };
    const url = await startPgBouncer(direct, settings);
    const other = openDatabase(url, { isPooled: true, connections: 8 });
    let stop = false;
    const busy = Array.from({ length: 8 }, async () => {
      while (!stop) await other.get("SELECT pg_sleep($1::float8)", [Math.random() / 500]);
    });
    for (let n = 0; n < 10; n += 1) expect(await kindOf(url)).toEqual({ isPooled: true });
    stop = true;
    await Promise.all(busy);
  });

  test("works with a whole store, whose migrations run once", async () => {
    const url = await startPgBouncer(await emptyDatabase(), { pool_mode: "transaction", default_pool_size: "4" });
    const masterKeyFile = join(temporaryFolder(), "master.key");
    const [store] = await Promise.all([1, 2].map(() => openStoreAt(url, { masterKeyFile })));
    if (store === undefined) throw new Error("there is no store");
    const shop = await addShop(store);
    await store.webhooks.set(shop.id, { url: "https://hooks.example.com/" }, 1);
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: "https://hooks.example.com/", topics: [] });
    expect(await removeShop(store, shop.domain)).toBe(true);
    await store.check();
  });

  test("in statement mode is refused", async () => {
    const url = await startPgBouncer(await emptyDatabase(), { pool_mode: "statement" });
    const [refused] = await failures([openStoreAt(url)]);
    expect(refused).toMatchObject({
      name: "SdsError",
      code: "failed",
      message: expect.stringMatching(/^the pooler in front of \S+ allows no transactions: set its pool mode to/),
    });
  });
});
