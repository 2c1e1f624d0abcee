import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
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

async function untilGone(folder: string): Promise<void> {
  await eventually(() => !existsSync(folder));
  const commands = () => readdirSync("/proc").flatMap((id) => (/^\d+$/.test(id) ? commandOf(id) : []));
  await eventually(() => !commands().some((command) => command.includes(folder)));
}

// Killed test runs used to leave their servers running, and these servers piled up.
test.skipIf(!hasPostgres()).each(["killed", "restarted", "ended"])(
  "a server of the tests and its folder go with the process that started it (%s)",
  async (how) => {
    const child = Bun.spawn([process.execPath, "-e", STARTER, how], { stdout: "pipe" });
    const { value } = await child.stdout.pipeThrough(new TextDecoderStream()).getReader().read();
    const folder = String(value).trim();
    expect(folder).toContain("sds-postgres-");
    if (how !== "ended") child.kill("SIGKILL");
    await child.exited;
    await untilGone(folder);
  },
);

test.skipIf(!hasPostgres())(
  "they also go when a test takes too long, and its processes are killed",
  async () => {
    const file = join(temporaryFolder(), "slow.test.ts");
    const source = `import { test } from "bun:test";
    const { startPostgres } = await import(${JSON.stringify(MODULE)});
    const { folder } = await startPostgres();
    console.log("folder", folder);
    test("slow", () => new Promise(() => undefined), 100);`;
    await Bun.write(file, source);
    const child = Bun.spawn([process.execPath, "test", file], {
      cwd: temporaryFolder(),
      stdout: "pipe",
      stderr: "ignore",
    });
    const folder = /folder (\S+)/.exec(await child.stdout.text())?.[1] ?? "";
    expect(folder).toContain("sds-postgres-");
    await untilGone(folder);
  },
  600_000,
);
