import { SQL } from "bun";
import { afterTest } from "./cleanup.ts";
import { binaryFolder, startPostgres } from "./postgres-process.ts";

/** A PostgreSQL server for tests, and a way to make databases on it. */
export interface TestServer {
  /** The URL with which the superuser connects to the database `postgres`. */
  url: string;
  /** Makes an empty database, or a copy of `copyOf`. @returns its address */
  createDatabase(copyOf?: string): Promise<string>;
  dropDatabase(url: string): Promise<void>;
}

let server: Promise<TestServer> | undefined;

/**
 * The server that SDS_TEST_POSTGRES names. Without that variable, the first call starts a server, which stops with this
 * process. Call this only if `hasPostgres` returns true.
 */
export function postgresServer(): Promise<TestServer> {
  server ??= findServer();
  return server;
}

/**
 * Whether tests run on PostgreSQL. This starts no server. On Linux x64, npm installs the server's programs. If they are
 * missing there, tests must fail instead of skipping PostgreSQL.
 */
export function hasPostgres(): boolean {
  if (process.env["SDS_TEST_ENGINE"] === "sqlite") return false;
  const isInNpm = process.platform === "linux" && process.arch === "x64";
  return isInNpm || process.env["SDS_TEST_POSTGRES"] !== undefined || binaryFolder() !== undefined;
}

async function findServer(): Promise<TestServer> {
  const named = process.env["SDS_TEST_POSTGRES"];
  if (named === undefined) return ownServer((await startPostgres()).url);
  const found = serverAt(named);
  await found.removeOld();
  return found;
}

/**
 * The server at `url` ends with this process, so `dropDatabase` does not wait until the database is removed. Removing a
 * database takes longer than making one.
 */
function ownServer(url: string): TestServer {
  const own = serverAt(url);
  return {
    ...own,
    async dropDatabase(address) {
      own.dropDatabase(address).catch(() => undefined);
    },
  };
}

/** Makes an empty database, or a copy of `copyOf`. The new database is removed after the test. @returns its address */
export async function emptyDatabase(copyOf?: string): Promise<string> {
  const { createDatabase, dropDatabase } = await postgresServer();
  const url = await createDatabase(copyOf);
  afterTest(() => dropDatabase(url));
  return url;
}

const PREFIX = "sds_test_";
const OLD_MS = 3_600_000;

function serverAt(url: string): TestServer & { removeOld(): Promise<void> } {
  const sql = new SQL(url, { max: 2, idleTimeout: 0 });
  const nameIn = (address: string) => new URL(address).pathname.slice(1);
  const drop = (name: string) => sql.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  return {
    url,
    async createDatabase(copyOf) {
      const name = `${PREFIX}${Date.now()}_${crypto.randomUUID().slice(0, 8)}`;
      const template = copyOf === undefined ? "" : ` TEMPLATE ${nameIn(copyOf)}`;
      // Copying files takes two thirds of the time that copying through the log takes.
      await sql.unsafe(`CREATE DATABASE ${name}${template} STRATEGY file_copy`);
      const made = new URL(url);
      made.pathname = name;
      return made.href;
    },
    async dropDatabase(address) {
      await drop(nameIn(address));
    },
    /** Removes the databases that killed test runs left. */
    async removeOld() {
      const rows: { name: string }[] = await sql.unsafe(
        `SELECT datname::text AS name FROM pg_database WHERE datname ~ '^${PREFIX}[0-9]+_'`,
      );
      const old = rows.filter(({ name }) => Date.now() - Number(name.split("_")[2]) > OLD_MS);
      for (const { name } of old) await drop(name);
    },
  };
}
