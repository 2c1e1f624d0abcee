import { SQL } from "bun";
import { binaryFolder, startPostgres } from "./postgres-process.ts";

/** A PostgreSQL server for tests, and a way to make databases on it. */
export interface TestServer {
  /** An address of the server's superuser, with the database postgres. */
  url: string;
  /** Makes an empty database, or a copy of one. @returns its address */
  createDatabase(copyOf?: string): Promise<string>;
  dropDatabase(url: string): Promise<void>;
}

let server: Promise<TestServer | undefined> | undefined;

/**
 * The server that SDS_TEST_POSTGRES names, or one of this test run: started at the first call and stopped with the
 * process. undefined where there is no PostgreSQL for this machine.
 */
export function postgresServer(): Promise<TestServer | undefined> {
  server ??= findServer();
  return server;
}

/** Whether there is a server to test with, without starting it. */
export function hasPostgres(): boolean {
  return process.env["SDS_TEST_POSTGRES"] !== undefined || binaryFolder() !== undefined;
}

async function findServer(): Promise<TestServer | undefined> {
  const named = process.env["SDS_TEST_POSTGRES"];
  if (named !== undefined) return serverAt(named);
  return binaryFolder() === undefined ? undefined : serverAt((await startPostgres()).url);
}

function serverAt(url: string): TestServer {
  const sql = new SQL(url, { max: 2, idleTimeout: 0 });
  const nameIn = (address: string) => new URL(address).pathname.slice(1);
  return {
    url,
    async createDatabase(copyOf) {
      const name = `sds_test_${crypto.randomUUID().replaceAll("-", "")}`;
      const template = copyOf === undefined ? "" : ` TEMPLATE ${nameIn(copyOf)}`;
      await sql.unsafe(`CREATE DATABASE ${name}${template}`);
      const made = new URL(url);
      made.pathname = name;
      return made.href;
    },
    async dropDatabase(address) {
      await sql.unsafe(`DROP DATABASE IF EXISTS ${nameIn(address)} WITH (FORCE)`);
    },
  };
}
