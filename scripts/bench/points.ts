import { Database } from "bun:sqlite";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import { runPinned, serveCommand, startServer, waitUntil } from "./servers.ts";
import { tell } from "./shops.ts";
import { DOMAIN, type Points, StandIn } from "./stand-in.ts";
import { machineLine, rounded, Table } from "./table.ts";

const { values } = parseArgs({ options: { large: { type: "boolean", default: false } } });
/** Git ignores this folder. */
const FOLDER = "dist/bench/points";
const SDS = join(FOLDER, "sds");
const SECRET_FILE = join(FOLDER, "secret");
const DATA = join(FOLDER, "data");

/** More points than a run can spend. */
const UNLIMITED: Points = { maximumAvailable: 1e9, restoreRate: 1e9 };
/** The points of the plan "Plus". */
const PLUS: Points = { maximumAvailable: 20_000, restoreRate: 1_000 };
/** The points per second of the standard plan. */
const STANDARD_RATE = 100;

/** Each contract has one line, a checkout and two renewals. */
const CONTRACTS = values.large ? 100_000 : 5_000;
const SEEDING = { contracts: CONTRACTS, renewals: 2, linesEach: 1 };
const RENEWED = 2_000;
/** The results are extrapolated to shops of this size. */
const LARGE_SHOP = 1_000_000;
const BILLING_NIGHT = 50_000;

const HOUR_S = 3_600;
const table = new Table();

function sds(...args: string[]): ReturnType<typeof runPinned> {
  return runPinned([SDS, "--data", DATA, ...args]);
}

async function startStandIn(points: Points): Promise<StandIn> {
  const standIn = await StandIn.start(SECRET_FILE, points, SEEDING);
  process.env["SDS_PLATFORM_URL"] = standIn.url;
  return standIn;
}

/** Loads the shop, and calculates how long a large shop would take with the points of a standard plan. */
async function measureLoad(way: string, options: string[], limitHours: number): Promise<void> {
  rmSync(DATA, { recursive: true, force: true });
  await using standIn = await startStandIn(UNLIMITED);
  await sds("shop", "connect", DOMAIN, "--client-credentials");
  const before = await standIn.spent();
  const { seconds, peakMemoryMb } = await sds("sync", DOMAIN, ...options);
  const { points } = await standIn.spent();
  const each = (points - before.points) / CONTRACTS;
  const hours = (each * LARGE_SHOP) / STANDARD_RATE / HOUR_S;
  const made = `${each.toFixed(2)} points for a contract with its three orders`;
  table.addBound(
    `First load of ${LARGE_SHOP.toLocaleString("en")} contracts at ${STANDARD_RATE} points/s, ${way}`,
    hours,
    limitHours,
    "h",
    ` (${made})`,
  );
  table.addBound(
    `The same, ${CONTRACTS.toLocaleString("en")} of them really loaded, points without limit: most memory`,
    peakMemoryMb,
    200,
    "MB",
    ` (${rounded(seconds)} s, ${rounded(CONTRACTS / seconds)}/s)`,
  );
}

function waiting(): number {
  using db = new Database(join(DATA, "sds.db"), { readonly: true });
  return db.query<{ count: number }, []>("SELECT count(*) AS count FROM inbox").get()?.count ?? 0;
}

/** Renews contracts while `serve` runs, and waits until all webhooks about them are processed. */
async function measureBillingNight(): Promise<void> {
  rmSync(DATA, { recursive: true, force: true });
  await using standIn = await startStandIn(PLUS);
  await sds("shop", "connect", DOMAIN, "--client-credentials");
  await sds("sync", DOMAIN);
  await using server = await startServer(serveCommand(SDS, DATA));
  await standIn.tell("webhooksTo", { url: `${server.url}/platform/webhooks` });
  const contracts = (await standIn.ids("contract")).slice(0, RENEWED);
  const customers = await standIn.ids("customer");
  const [before, start] = [await standIn.spent(), performance.now()];
  for (const [index, id] of contracts.entries()) {
    const attempt = await standIn.tell("startAttempt", { id, index: SEEDING.renewals + 1 });
    const order = await standIn.tell("succeedAttempt", { id: attempt });
    await standIn.tell("updateOrder", { id: order });
    await standIn.tell("updateCustomer", { id: customers[index], firstName: "Renewed" });
  }
  await waitUntil(() => waiting() === 0, 100);
  const seconds = (performance.now() - start) / 1_000;
  const { points, throttled } = await standIn.spent();
  const each = (points - before.points) / RENEWED;
  const made = `${each.toFixed(1)} points for a renewal with six webhooks`;
  const name = `${BILLING_NIGHT.toLocaleString("en")} renewals caught up with`;
  const hours = (each * BILLING_NIGHT) / STANDARD_RATE / HOUR_S;
  table.addBound(`${name} at ${STANDARD_RATE} points/s`, hours, 3, "h", ` (${made})`);
  const minutes = (each * BILLING_NIGHT) / PLUS.restoreRate / 60;
  table.addBound(`${name} at ${PLUS.restoreRate.toLocaleString("en")} points/s`, minutes, 20, "min");
  table.addRemark(
    `${RENEWED.toLocaleString("en")} of them really made at this rate, until the inbox is empty`,
    `${rounded(seconds)} s (refused ${throttled})`,
  );
}

mkdirSync(FOLDER, { recursive: true });
await $`bun scripts/build.ts --outfile ${SDS}`.quiet();
await Bun.write(SECRET_FILE, "the-app-client-secret");
// Environment of every sds that this bench starts.
Object.assign(process.env, {
  SDS_PLATFORM_CLIENT_ID: "client",
  SDS_PLATFORM_SECRET_FILE: SECRET_FILE,
  SDS_LOG: "error",
});
tell("Loading a shop by pages ...");
await measureLoad("by pages alone", ["--pages"], 30);
tell("Loading the shop with bulk operations ...");
await measureLoad("with bulk operations", [], 8);
tell("Renewing contracts ...");
await measureBillingNight();

process.stdout.write(
  `One shop on the stand-in of the platform, which charges as the platform does; ${machineLine()}\n\n${table}\n`,
);
rmSync(FOLDER, { recursive: true });
