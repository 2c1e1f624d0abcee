import { join } from "node:path";
import type { Shop } from "../../src/domain/shop.ts";
import { openCheckup } from "../../src/store/open-store.ts";
import type { Checkup } from "../../src/store/port/checkup.ts";
import type { Store } from "../../src/store/port/store.ts";
import { randomBytes, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { layEmptyDatabase } from "../support/empty-database.ts";
import { openStoreIn } from "../support/open-store.ts";
import { readPostgresRows } from "../support/postgres-rows.ts";
import { hasPostgres } from "../support/postgres-server.ts";
import { databaseWithTables, openStoreAt } from "../support/postgres-store.ts";
import { readRows } from "../support/rows.ts";
import type { Row, Table } from "../support/tables.ts";
import { addShop, shopWithEvents } from "./fixtures.ts";

interface OpenOptions {
  /** Random bytes for keys, secrets and delivery ids. Real randomness by default. */
  random?: (bytes: number) => Uint8Array;
}

/** An engine's store on a new, empty database. When the test ends, the store is closed and the database is removed. */
export interface TestStore {
  store: Store;
  /** Opens the same database once more, as a second process would. The first store stays open. */
  reopen(): Promise<Store>;
  /**
   * Returns all rows of a table, in the order and form of tables.ts. Tests read rows only in this way, and never open
   * the database themselves.
   */
  rows(table: Table): Promise<Row[]>;
  /** Opens the same database only for reading. */
  checkup(): Promise<Checkup>;
}

export interface Engine {
  name: string;
  open(options?: OpenOptions): Promise<TestStore>;
}

/**
 * Lists the store's engines that can run here. Each test of this folder must pass for all of these engines:
 * `describe.each(engines())("$name: …", …)`.
 */
export function engines(): Engine[] {
  const sqlite = { name: "sqlite", open: openSqlite };
  return hasPostgres() ? [sqlite, { name: "postgres", open: openPostgres }] : [sqlite];
}

/** Opens a new database with one shop. */
export async function storeWithShop(engine: Engine): Promise<TestStore & { shop: Shop }> {
  const opened = await engine.open();
  return { ...opened, shop: await addShop(opened.store) };
}

/** Opens a new database with the shops alpha and other. */
export async function storeWithTwoShops(engine: Engine): Promise<TestStore & { shop: Shop; other: Shop }> {
  const opened = await storeWithShop(engine);
  return { ...opened, other: await addShop(opened.store, "other") };
}

/** Opens a new database with a shop for which every event is queued. */
export async function storeWithEvents(engine: Engine): Promise<TestStore & { shop: Shop }> {
  const opened = await engine.open();
  return { ...opened, shop: await shopWithEvents(opened.store) };
}

/** Opens a new database in two processes. The first process then adds a shop. */
export async function storeInTwoProcesses(engine: Engine): Promise<TestStore & { second: Store; shop: Shop }> {
  const opened = await engine.open();
  const second = await opened.reopen();
  return { ...opened, second, shop: await addShop(opened.store) };
}

async function openSqlite({ random = randomBytes }: OpenOptions = {}): Promise<TestStore> {
  const folder = temporaryFolder();
  layEmptyDatabase(folder);
  async function open(): Promise<Store> {
    const store = await openStoreIn(folder, random);
    afterTest(() => store.close());
    return store;
  }
  return {
    store: await open(),
    reopen: open,
    async rows(table) {
      return readRows(folder, table);
    },
    checkup: () => openedCheckup(folder),
  };
}

async function openPostgres({ random = randomBytes }: OpenOptions = {}): Promise<TestStore> {
  const url = await databaseWithTables();
  const masterKeyFile = join(temporaryFolder(), "master.key");
  const open = () => openStoreAt(url, { masterKeyFile, random });
  return {
    store: await open(),
    reopen: open,
    rows: (table) => readPostgresRows(url, table),
    checkup: () => openedCheckup("", url),
  };
}

async function openedCheckup(folder: string, url?: string): Promise<Checkup> {
  const server = url === undefined ? null : { url, passwordFile: null, sleep: Bun.sleep };
  const opened = await openCheckup(folder, server);
  if ("problem" in opened) throw new Error(opened.detail);
  afterTest(() => opened.checkup.close());
  return opened.checkup;
}
