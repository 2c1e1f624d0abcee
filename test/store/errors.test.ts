import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import { truncateSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { StoreError } from "../../src/store/port/store-error.ts";
import type { BusyTimeoutMs } from "../../src/store/sqlite/database.ts";
import { withStoreErrors } from "../../src/store/sqlite/errors.ts";
import { createLockWait } from "../../src/store/sqlite/lock-wait.ts";
import { addShop, allRows, commit, failures, receipt, removeShop, TOKENS } from "../conformance/fixtures.ts";
import { START, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { UPGRADE } from "../support/open-store.ts";
import { customer } from "../support/records.ts";

const WAIT_MS: number = 50;

/** Opens a store. Also returns the store's connection, so that a test can make the database full. */
async function open(folder = temporaryFolder()): Promise<{ store: Store; connection: Database; path: string }> {
  const spy = spyOn(Database.prototype, "prepare");
  const options = {
    folder,
    masterKeyFile: join(folder, "master.key"),
    busyTimeoutMs: WAIT_MS as BusyTimeoutMs,
    ...UPGRADE,
  };
  const store = await openStore(options);
  const connection = spy.mock.contexts[0] as unknown as Database;
  spy.mockRestore();
  afterTest(() => store.close());
  return { store, connection, path: join(folder, "sds.db") };
}

/** Opens a connection, as another process does. */
function connect(path: string): Database {
  const db = new Database(path);
  afterTest(() => db.close());
  return db;
}

/** Returns the reason of a failed call. Also checks that only the cause shows SQLite's error. */
async function reasonOf(call: Promise<unknown>): Promise<string> {
  const [failure] = await failures([call]);
  expect(failure).toBeInstanceOf(StoreError);
  const { reason, message, cause } = failure as StoreError;
  expect(message).not.toMatch(/SQLITE/i);
  expect(failure).not.toHaveProperty("code");
  expect(cause).toHaveProperty("code", expect.stringMatching(/^SQLITE_/));
  return reason;
}

describe("a failure of the database is reported as", () => {
  test("busy if another process holds the lock for too long, in every part that writes", async () => {
    const { store, path } = await open();
    const shop = await addShop(store);
    connect(path).run("BEGIN IMMEDIATE");
    const { id } = shop;
    const writes = {
      mirror: () => commit(store, shop, [customer(1)]),
      shops: () => store.shops.set(shop.domain, { plan: "free" }),
      keys: () => store.keys.touch(new Map([["key_1", START]])),
      webhooks: () => store.webhooks.rotateSecret(id, START),
      deliveries: () =>
        store.deliveries.recordAndClaim([], [{ shopId: id, kind: "webhook", count: 1 }], START, START, []),
      inbox: () => store.inbox.receive([receipt(shop, "w1")], START),
      connections: () => store.connections.connect(id, "token", TOKENS, [], START),
      syncs: () => store.syncs.complete(id, "full", START, 0, START),
      sessions: () => store.sessions.noteAddress("http://127.0.0.1:1"),
      check: () => store.check(),
    };
    for (const [part, write] of Object.entries(writes))
      expect({ part, reason: await reasonOf(write()) }).toEqual({ part, reason: "busy" });
    expect(await allRows(store, shop, "customers")).toEqual([]);
  });

  test("conflict if a write breaks a constraint", async () => {
    const { store } = await open();
    const shop = await addShop(store);
    await removeShop(store, shop.domain);
    expect(await reasonOf(store.connections.connect(shop.id, "token", TOKENS, [], START))).toBe("conflict");
  });

  test("lost if the disk is full; stored data can still be read", async () => {
    const { store, connection } = await open();
    const shop = await addShop(store);
    connection.run("PRAGMA max_page_count = 1");
    const many = Array.from({ length: 3_000 }, (_, n) => customer(n + 1, { firstName: "x".repeat(1_000) }));
    expect(await reasonOf(commit(store, shop, many))).toBe("lost");
    expect(await store.shops.list()).toEqual([shop]);
    expect(await allRows(store, shop, "customers")).toEqual([]);
  });

  test("lost if the file is damaged", async () => {
    const folder = temporaryFolder();
    const writer = await open(folder);
    const shop = await addShop(writer.store);
    await commit(writer.store, shop, [customer(1)]);
    await writer.store.checkpoint();
    // A second connection, because the first one has the pages in its cache.
    const { store, path } = await open(folder);
    truncateSync(path, 16_384);
    expect(await reasonOf(allRows(store, shop, "customers"))).toBe("lost");
    expect(await reasonOf(commit(store, shop, [customer(2)]))).toBe("lost");
  });
});

describe("an error that is not a failure of the database passes unchanged", () => {
  test("for a statement that cannot run, which is a defect of ours", async () => {
    const { store, path } = await open();
    const shop = await addShop(store);
    connect(path).run("DROP TABLE syncs");
    const [failure] = await failures([store.syncs.unfinished(shop.id, "full")]);
    expect(failure).not.toBeInstanceOf(StoreError);
    expect(failure).toMatchObject({ message: "no such table: syncs" });
  });

  test("for a refusal", async () => {
    const { store } = await open();
    expect((await failures([store.shops.settings(1)]))[0]).toMatchObject({ name: "SdsError", code: "not_found" });
  });
});

const OWN_MESSAGES: Record<string, string> = {
  SQLITE_FULL: "the disk of /data is full",
  SQLITE_READONLY: "its file cannot be written: run this as its owner, and check its mode and its disk",
  SQLITE_CANTOPEN: "its file cannot be opened: run this as its owner, and check the limit of open files",
};

test.each<[code: string, reason: string | undefined]>([
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_BUSY_SNAPSHOT", "busy"],
  ["SQLITE_LOCKED", "busy"],
  ["SQLITE_LOCKED_SHAREDCACHE", "busy"],
  ["SQLITE_CONSTRAINT_UNIQUE", "conflict"],
  ["SQLITE_CONSTRAINT_FOREIGNKEY", "conflict"],
  ["SQLITE_FULL", "lost"],
  ["SQLITE_IOERR_WRITE", "lost"],
  ["SQLITE_CORRUPT", "lost"],
  ["SQLITE_NOTADB", "lost"],
  ["SQLITE_READONLY", "lost"],
  ["SQLITE_CANTOPEN", "lost"],
  ["SQLITE_ERROR", undefined],
  ["SQLITE_ERROR_RETRY", undefined],
  ["SQLITE_MISUSE", undefined],
  ["SQLITE_RANGE", undefined],
  ["SQLITE_MISMATCH", undefined],
  ["ENOENT", undefined],
])("of SQLite's error %s the reason is %p", async (code, reason) => {
  const thrown = Object.assign(new Error("it failed"), { code });
  const part = withStoreErrors(
    {
      async call(argument: number) {
        throw argument === 1 ? thrown : new Error("the argument was lost");
      },
      setting: 5,
    },
    { lockWait: createLockWait(connect(":memory:"), 0), truncateLog: () => false, folder: "/data" },
  );
  expect(part.setting).toBe(5);
  const [failure] = await failures([part.call(1)]);
  if (reason === undefined) expect(failure).toBe(thrown);
  else
    expect(failure).toMatchObject({
      name: "StoreError",
      message: OWN_MESSAGES[code] ?? "it failed",
      reason,
      cause: thrown,
    });
});

test("an operation waits at most its timeout, even if the lock passes from one process to the next", async () => {
  const path = join(temporaryFolder(), "locked.db");
  const [own, other] = [connect(path), connect(path)];
  const busy = Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
  // If each failure began a full new wait, the operation would take 1.8 s every time.
  await eventually(async () => {
    other.run("BEGIN IMMEDIATE");
    const { repeat } = createLockWait(own, 1_000);
    const began = performance.now();
    setTimeout(() => other.run("COMMIT"), 800);
    let tries = 0;
    const operation = async () => {
      tries += 1;
      other.run("BEGIN IMMEDIATE");
      throw busy;
    };
    expect(await failures([repeat(operation, busy)])).toEqual([busy]);
    const tookMs = performance.now() - began;
    other.run("COMMIT");
    expect(tookMs).toBeGreaterThan(950);
    return tries === 1 && tookMs < 1_700;
  });
});
