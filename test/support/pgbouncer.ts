import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterTest } from "./cleanup.ts";
import { endWithUs } from "./end-with-us.ts";
import { eventually } from "./eventually.ts";
import { withPort } from "./postgres-connections.ts";
import { answersAt, freePort, spawnAsServer } from "./postgres-process.ts";

const BINARY = Bun.which("pgbouncer") ?? Bun.which("/usr/sbin/pgbouncer");

/** Whether PgBouncer is installed. Without PgBouncer, its tests are skipped. */
export function hasPgBouncer(): boolean {
  return BINARY !== null;
}

/**
 * Starts PgBouncer in front of a database. PgBouncer ends after the test.
 * @returns the address at which PgBouncer serves the database
 */
export async function startPgBouncer(url: string, settings: Record<string, string>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "sds-pgbouncer-"));
  chmodSync(folder, 0o777);
  endWithUs(folder, "pid");
  const port = freePort();
  const all = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "trust",
    auth_file: join(folder, "users"),
    max_client_conn: 500,
    logfile: join(folder, "log"),
    pidfile: join(folder, "pid"),
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const servers = `* = host=127.0.0.1 port=${new URL(url).port}`;
  writeFileSync(join(folder, "users"), '"postgres" ""\n');
  writeFileSync(join(folder, "pooler.ini"), ["[databases]", servers, "[pgbouncer]", ...lines, ""].join("\n"));
  const child = spawnAsServer([BINARY ?? "", join(folder, "pooler.ini")], folder);
  afterTest(async () => {
    child.kill("SIGKILL");
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  });
  const through = withPort(url, port);
  await eventually(() => answersAt(through));
  return through;
}
