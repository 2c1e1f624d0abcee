import { readFileSync } from "node:fs";
import { join } from "node:path";
import { $, SQL } from "bun";
import { type PostgresProcess, startPostgres } from "../../test/support/postgres-process.ts";
import { familySeconds, processorSeconds } from "./processor-time.ts";
import { median, type Server, serveCommand, startPinnedServer } from "./servers.ts";

/** One of the two engines that a measurement compares. */
export interface Side {
  folder: string;
  /** The environment of every command that uses this engine. */
  env: Record<string, string>;
  /** Processor time of the database's own processes so far, in seconds; 0 for SQLite, which runs inside sds. */
  databaseSeconds(): number;
}

/**
 * A PostgreSQL server with default settings, so a commit is synced to the disk. The server is killed when the bench
 * ends.
 */
export interface BenchServer {
  side(name: string, folder: string): Side;
  addressOf(name: string): string;
  /** Makes a database with the content of a data folder. */
  fill(name: string, sds: string, folder: string): Promise<void>;
  /** Makes a copy of a database. Fails while a client is connected to the original. */
  clone(name: string, from: string): Promise<void>;
  sql(name: string): SQL;
  version: string;
  port: number;
  stop(): Promise<void>;
}

export async function startBenchServer(): Promise<BenchServer> {
  const server: PostgresProcess = await startPostgres({ fsync: "on", full_page_writes: "on", max_connections: 100 });
  const pid = Number(readFileSync(join(server.folder, "data/postmaster.pid"), "utf8").split("\n", 1)[0]);
  // Runs PostgreSQL on the second core: new processes of the server inherit this setting. So sds has the first core
  // alone.
  Bun.spawnSync(["taskset", "-cp", "1", String(pid)]);
  const addressOf = (name: string) => Object.assign(new URL(server.url), { pathname: name }).href;
  const admin = new SQL(server.url, { max: 1 });
  const [found] = await admin.unsafe("SHOW server_version");
  const envOf = (name: string, folder: string) => ({
    SDS_DATABASE_URL: addressOf(name),
    SDS_MASTER_KEY_FILE: join(folder, "master.key"),
    SDS_PUBLIC_URL: "http://sds.test",
  });
  return {
    addressOf,
    version: String(found.server_version),
    port: Number(new URL(server.url).port),
    side: (name, folder) => ({ folder, env: envOf(name, folder), databaseSeconds: () => familySeconds(pid) }),
    async fill(name, sds, folder) {
      await admin.unsafe(`CREATE DATABASE ${name}`);
      await $`${sds} --data ${folder} copy --to ${addressOf(name)}`.quiet();
      const sql = new SQL(addressOf(name), { max: 1 });
      await sql.unsafe("VACUUM ANALYZE");
      await sql.close();
    },
    async clone(name, from) {
      await admin.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE ${from}`);
    },
    sql: (name) => new SQL(addressOf(name), { max: 1 }),
    async stop() {
      await admin.close();
      await server.stop();
    },
  };
}

export function sqliteSide(folder: string): Side {
  return { folder, env: {}, databaseSeconds: () => 0 };
}

export function startSide(program: string, side: Side): Promise<Server> {
  return startPinnedServer(serveCommand(program, side.folder), side.env);
}

/**
 * The processor time of sds and of the database's server for one operation, in microseconds. Also operations per
 * second.
 */
export interface Cost {
  sds: number;
  database: number;
  perSecond: number;
}

/** Measures what `run` costs. @param run returns how many operations it did, and in how many seconds */
export async function costOf(
  servers: readonly Server[],
  side: Side,
  run: () => Promise<{ count: number; seconds: number }>,
): Promise<Cost> {
  const used = () => servers.reduce((sum, { pid }) => sum + processorSeconds(pid), 0);
  const [sdsBefore, databaseBefore] = [used(), side.databaseSeconds()];
  const { count, seconds } = await run();
  return {
    sds: ((used() - sdsBefore) * 1e6) / count,
    database: ((side.databaseSeconds() - databaseBefore) * 1e6) / count,
    perSecond: count / seconds,
  };
}

/** The median of each value. */
export function medianCost(costs: readonly Cost[]): Cost {
  const of = (name: keyof Cost) => median(costs.map((each) => each[name]));
  return { sds: of("sds"), database: of("database"), perSecond: of("perSecond") };
}
