import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { hasPostgres } from "../support/postgres-server.ts";

const MODULE = join(import.meta.dir, "../support/postgres-process.ts");
const STARTER = `
const { startPostgres } = await import(${JSON.stringify(MODULE)});
const { folder, stop, start } = await startPostgres();
if (process.argv[1] === "restarted") {
  await stop("SIGKILL");
  await start();
}
console.log(folder);
if (process.argv[1] !== "ended") setInterval(() => {}, 1_000);
`;

/** The command of a process, if it still runs. */
function commandOf(id: string): string[] {
  try {
    return [readFileSync(join("/proc", id, "cmdline"), "utf8")];
  } catch {
    return [];
  }
}

// A test run whose process was killed left its server, and these piled up.
test.if(hasPostgres()).each(["killed", "restarted", "ended"])(
  "a server of the tests and its folder go with the process that started it (%s)",
  async (how) => {
    const child = Bun.spawn([process.execPath, "-e", STARTER, how], { stdout: "pipe" });
    const { value } = await child.stdout.pipeThrough(new TextDecoderStream()).getReader().read();
    const folder = String(value).trim();
    expect(folder).toContain("sds-postgres-");
    if (how !== "ended") child.kill("SIGKILL");
    await child.exited;
    await eventually(() => !existsSync(folder), 10_000);
    const commands = readdirSync("/proc").flatMap((id) => (/^\d+$/.test(id) ? commandOf(id) : []));
    expect(commands.filter((command) => command.includes(folder))).toEqual([]);
  },
);
