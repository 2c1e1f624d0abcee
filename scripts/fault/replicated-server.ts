import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { freePort, runAsServer, spawnAsServer } from "../../test/support/postgres-process.ts";

const START_WITHIN = 30_000;

/** One of two servers that replicate. */
export interface ReplicatedServer {
  port: number;
  /** Starts the server as a primary. With `readOnly` it starts as a standby without a primary. */
  start(options?: { readOnly: boolean }): Promise<void>;
  /** Copies a primary into this server, and starts this server as the primary's standby. */
  follow(primary: ReplicatedServer): Promise<void>;
  /** Sets whether commits wait for a standby. If so, waits until a standby is in sync. */
  waitForStandby(isWaiting: boolean): Promise<void>;
  promote(): Promise<void>;
  kill(): Promise<void>;
}

/**
 * Finds the newest installed server that has pg_basebackup, which makes the copy for a standby.
 * @throws if there is none
 */
export function replicatingBinaries(): string {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).toSorted((a, b) => Number(b) - Number(a)) : [];
  const found = versions.map((each) => join(root, each, "bin")).find((bin) => existsSync(join(bin, "pg_basebackup")));
  if (found === undefined) throw new Error("install PostgreSQL first (Debian: apt-get install postgresql)");
  return found;
}

/** @param folder a folder that the user of the server owns */
export function replicatedServer(binaries: string, folder: string, name: string): ReplicatedServer {
  const data = join(folder, name);
  const port = freePort();
  const command = (program: string, ...args: string[]) => runAsServer([join(binaries, program), ...args], folder);
  let child: Bun.Subprocess | undefined;

  async function ask<T>(text: string): Promise<T[]> {
    const sql = new SQL(`postgres://postgres@127.0.0.1:${port}/postgres`, { max: 1, connectionTimeout: 5 });
    try {
      return Array.from(await sql.unsafe(text)) as T[];
    } finally {
      await sql.close({ timeout: 0 });
    }
  }

  async function until(isReached: () => Promise<boolean>): Promise<void> {
    const began = performance.now();
    while (!(await isReached().catch(() => false))) {
      if (performance.now() - began > START_WITHIN) throw new Error(`${name} does not get ready`);
      await Bun.sleep(50);
    }
  }

  async function run(): Promise<void> {
    const settings = { port, listen_addresses: "127.0.0.1", unix_socket_directories: folder, max_connections: 100 };
    const flags = Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
    await until(async () => {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null)
        child = spawnAsServer([join(binaries, "postgres"), "-D", data, ...flags], folder);
      return (await ask("SELECT 1")).length === 1;
    });
  }

  return {
    port,

    async start({ readOnly } = { readOnly: false }) {
      if (!existsSync(data)) command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8");
      if (readOnly) writeFileSync(join(data, "standby.signal"), "");
      await run();
    },

    async follow(primary) {
      rmSync(data, { recursive: true, force: true });
      const source = ["-h", "127.0.0.1", "-p", String(primary.port), "-U", "postgres"];
      command("pg_basebackup", "-D", data, "-R", "--checkpoint=fast", ...source);
      await run();
    },

    async waitForStandby(isWaiting) {
      await ask(`ALTER SYSTEM SET synchronous_standby_names = '${isWaiting ? "*" : ""}'`);
      await ask("SELECT pg_reload_conf()");
      if (!isWaiting) return;
      await until(async () => {
        const [found] = await ask<{ sync_state: string }>("SELECT sync_state FROM pg_stat_replication");
        return found?.sync_state === "sync";
      });
    },

    async promote() {
      await ask("SELECT pg_promote()");
    },

    async kill() {
      child?.kill("SIGKILL");
      await child?.exited;
    },
  };
}
