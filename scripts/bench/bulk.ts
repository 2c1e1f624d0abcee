import { cpSync, existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import { tell } from "./shops.ts";
import { DOMAIN, type Points, StandIn } from "./stand-in.ts";
import { rate, rounded, Table } from "./table.ts";

const { values } = parseArgs({
  options: { contracts: { type: "string", default: "10000" }, renewals: { type: "string", default: "2" } },
});
const CONTRACTS = Number(values.contracts);
const RENEWALS = Number(values.renewals);
const ORDERS = CONTRACTS * (1 + RENEWALS);

/** Git ignores it. */
const FOLDER = "dist/bench/bulk";
const SDS = join(FOLDER, "sds");
const SECRET_FILE = join(FOLDER, "secret");
/** More than can be spent. */
const UNTHROTTLED: Points = { maximumAvailable: 1e9, restoreRate: 1e9 };
/** Points a second that the smallest plan gives. */
const SMALLEST_PLAN = 100;
const GOAL_CONTRACTS = 1_000_000;
const MEBIBYTE = 1024 ** 2;

interface Load {
  seconds: number;
  peakMb: number;
  points: number;
  operations: Record<string, number>;
}

async function sds(folder: string, ...args: string[]): Promise<{ seconds: number; peakMb: number }> {
  const start = performance.now();
  const program = Bun.spawn(["setpriv", "--pdeathsig", "SIGKILL", SDS, "--data", folder, ...args], {
    env: process.env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [said, status] = await Promise.all([new Response(program.stderr).text(), program.exited]);
  if (status !== 0 || said.includes("cannot read")) throw new Error(`sds ${args.join(" ")}: ${said}`);
  const seconds = (performance.now() - start) / 1_000;
  return { seconds, peakMb: Number(program.resourceUsage()?.maxRSS ?? Number.NaN) / 1e6 };
}

async function load(standIn: StandIn, template: string, ...options: string[]): Promise<Load & { folder: string }> {
  const folder = join(FOLDER, `load${options.join("")}`);
  rmSync(folder, { recursive: true, force: true });
  cpSync(template, folder, { recursive: true });
  const before = await standIn.spent();
  const { seconds, peakMb } = await sds(folder, "sync", DOMAIN, ...options);
  const after = await standIn.spent();
  const operations = Object.fromEntries(
    Object.entries(after.operations).map(([name, n]) => [name, n - (before.operations[name] ?? 0)]),
  );
  return { folder, seconds, peakMb, points: after.points - before.points, operations };
}

function add(table: Table, what: string, { seconds, peakMb, points, operations }: Load): void {
  const asked = Object.entries(operations).filter(([, n]) => n > 0);
  const each = points / CONTRACTS;
  const hours = (each * GOAL_CONTRACTS) / SMALLEST_PLAN / 3_600;
  const took = `${rounded(seconds)} s, ${rate(CONTRACTS / seconds)} contracts`;
  table.addRemark(`${what}: time without a limit of points`, took);
  table.addRemark(
    `${what}: requests`,
    asked.map(([name, n]) => `${name} ${n}`).join(", "),
    `${each.toFixed(2)} points for each contract; ${rounded(hours)} h for ${GOAL_CONTRACTS.toLocaleString("en")}`,
  );
  table.addBound(`${what}: peak resident memory`, peakMb, 200, "MB");
}

rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
await $`bun scripts/build.ts --outfile ${SDS}`.quiet();
await Bun.write(SECRET_FILE, "the-app-client-secret");
tell(`Seeding ${CONTRACTS.toLocaleString("en")} contracts with ${ORDERS.toLocaleString("en")} orders ...`);
await using standIn = await StandIn.start(SECRET_FILE, UNTHROTTLED, { contracts: CONTRACTS, renewals: RENEWALS });
Object.assign(process.env, {
  SDS_PLATFORM_URL: standIn.url,
  SDS_PLATFORM_CLIENT_ID: "client",
  SDS_PLATFORM_SECRET_FILE: SECRET_FILE,
  SDS_LOG: "warn",
});
const template = join(FOLDER, "connected");
await sds(template, "shop", "connect", DOMAIN, "--client-credentials");
const table = new Table();
tell("Loading with bulk operations ...");
const bulk = await load(standIn, template);
add(table, "Bulk operations", bulk);
tell("Loading by pages ...");
add(table, "Pages", await load(standIn, template, "--pages"));
const size = ["sds.db", "sds.db-wal"].map((name) => join(bulk.folder, name)).filter(existsSync);
const bytes = size.reduce((sum, file) => sum + statSync(file).size, 0);
table.addRemark("Database after the load with bulk operations", `${rounded(bytes / MEBIBYTE)} MiB`);
const machine = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, Bun ${Bun.version}`;
process.stdout.write(
  `${CONTRACTS.toLocaleString("en")} contracts, ${ORDERS.toLocaleString("en")} orders; ${machine}\n\n${table}\n`,
);
rmSync(FOLDER, { recursive: true });
