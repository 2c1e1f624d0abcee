/**
 * Compares an earlier program with this one, in turn, on SQLite: what they take of the processor. Each has folders that
 * it made itself. `bun scripts/bench/versions.ts PROGRAM`
 */

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import * as queued from "./queued.ts";
import { ask, median, startServer } from "./servers.ts";
import * as shops from "./shops.ts";
import { type Cost, copyFolder, costOf, medianCost, sqliteSide, startSide } from "./sides.ts";
import { postAll, signedPosts } from "./signed-posts.ts";

const [before = ""] = process.argv.slice(2);
if (before === "") throw new Error("name the program of before");
const ROUNDS = 7;
const ROWS = 100_000;
const PAGE_SECONDS = 2;
const CONNECTIONS = 16;
const POSTS = 1_500;
const WARM_POSTS = 300;
const IMPORTED = 20_000;
const SHOPS = 20;
const EVENTS_PER_SHOP = 250;
const LIMIT = 1.05;
const DOMAIN = "bench.myshopify.com";

type Which = "before" | "after";
const PROGRAMS: Record<Which, string> = { before, after: shops.SDS };
const FOLDER = "dist/bench/versions";

type Measure = (which: Which) => Promise<Cost>;

/** @returns a row: the medians, and the median of the ratios of the rounds */
async function compare(name: string, measure: Measure): Promise<string> {
  const costs: Record<Which, Cost[]> = { before: [], after: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    // Who goes first changes, because what goes second finds warm files.
    const order: Which[] = round % 2 === 0 ? ["before", "after"] : ["after", "before"];
    for (const which of order) {
      const cost = await measure(which);
      if (round > 0) costs[which].push(cost);
    }
  }
  const ratio = median(costs.after.map(({ sds }, round) => sds / (costs.before[round]?.sds ?? Number.NaN)));
  const [old, now] = [medianCost(costs.before), medianCost(costs.after)];
  const met = ratio <= LIMIT ? "yes" : "no";
  const row = `| ${name} | ${Math.round(old.sds)} µs | ${Math.round(now.sds)} µs | ${ratio.toFixed(2)} | ${met} |`;
  shops.tell(row);
  return row;
}

function folderOf(which: Which, name: string): string {
  return join(FOLDER, `${which}-${name}`);
}

/** Runs a command of a program on one of its folders. */
async function run(which: Which, name: string, ...command: string[]): Promise<string> {
  return (await $`${PROGRAMS[which]} --data ${folderOf(which, name)} ${command}`.quiet().text()).trim();
}

async function makeShop(which: Which, endpoint: string): Promise<void> {
  shops.tell(`Making the folders of the program ${which} ...`);
  await run(which, "empty", "shop", "add", DOMAIN);
  copyFolder(folderOf(which, "empty"), folderOf(which, "shop"));
  await run(which, "shop", "import", await shops.recordFile(ROWS));
  await run(which, "shop", "webhook", "set", "--url", endpoint, "--all-topics");
}

async function pages(limit: number): Promise<Measure> {
  const made = await Promise.all(
    (["before", "after"] as const).map(async (which) => {
      const key = await run(which, "shop", "key", "create", "--label", "bench");
      return [which, { key, paths: shops.randomPages({ folder: folderOf(which, "shop"), key }, limit) }] as const;
    }),
  );
  const of = new Map(made);
  return async (which) => {
    const { key = "", paths = "" } = of.get(which) ?? {};
    const side = sqliteSide(folderOf(which, "shop"));
    await using server = await startSide(PROGRAMS[which], side);
    await ask({ server, key, paths }, 1);
    return await costOf([server], side, async () => {
      const perSecond = await ask({ server, key, paths }, PAGE_SECONDS);
      return { count: perSecond * PAGE_SECONDS, seconds: PAGE_SECONDS };
    });
  };
}

/** Each time the same events, in a copy. */
async function posted(which: Which): Promise<Cost> {
  const side = sqliteSide(copyFolder(folderOf(which, "shop"), folderOf(which, "used")));
  const { secret } = JSON.parse(await run(which, "used", "intake", "secret", "--json"));
  const batch = signedPosts(DOMAIN, secret, WARM_POSTS + POSTS);
  await using server = await startSide(PROGRAMS[which], side);
  await postAll([server], batch.slice(0, WARM_POSTS), CONNECTIONS);
  return await costOf([server], side, () => postAll([server], batch.slice(WARM_POSTS), CONNECTIONS));
}

/** The whole processor time of `sds import`. */
async function imported(which: Which): Promise<Cost> {
  const folder = copyFolder(folderOf(which, "empty"), folderOf(which, "used"));
  const command = ["taskset", "-c", "0", PROGRAMS[which], "--data", folder, "import", importFile];
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "ignore" });
  if ((await child.exited) !== 0) throw new Error("the import failed");
  return { sds: Number(child.resourceUsage()?.cpuTime.total) / IMPORTED, database: 0, perSecond: 0 };
}

async function makeQueue(which: Which, endpoint: string): Promise<void> {
  const file = await shops.recordFile(EVENTS_PER_SHOP);
  for (let index = 0; index < SHOPS; index += 1) {
    const shop = `shop${index}.myshopify.com`;
    await run(which, "queue", "shop", "add", shop);
    await run(which, "queue", "webhook", "set", "--shop", shop, "--url", endpoint, "--all-topics");
    await run(which, "queue", "import", "--shop", shop, "--events", file);
  }
}

async function drained(which: Which): Promise<Cost> {
  const side = sqliteSide(copyFolder(folderOf(which, "queue"), folderOf(which, "used")));
  await using server = await startSide(PROGRAMS[which], side);
  return await costOf([server], side, async () => {
    const start = performance.now();
    const isDue = "SELECT 1 FROM deliveries WHERE claimable_at IS NOT NULL LIMIT 1";
    while (queued.hasRow(side.folder, isDue)) await Bun.sleep(50);
    return { count: SHOPS * EVENTS_PER_SHOP, seconds: (performance.now() - start) / 1_000 };
  });
}

process.env["SDS_EGRESS_ALLOW"] = "127.0.0.0/8";
await shops.buildProgram();
rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
const hanging = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
await using sink = await startServer(["taskset", "-c", "1", "bun", join(import.meta.dir, "sink.ts")]);
for (const which of ["before", "after"] as const) {
  await makeShop(which, `http://127.0.0.1:${hanging.port}/`);
  await makeQueue(which, `${sink.url}/`);
}
const importFile = await shops.recordFile(IMPORTED);
const rows = [
  await compare("Page of 50", await pages(50)),
  await compare("Page of 250", await pages(250)),
  await compare(`Posted event, ${CONNECTIONS} connections`, posted),
  await compare(`Imported record, ${IMPORTED.toLocaleString("en")} in all`, imported),
  await compare("Delivery, recorded and claimed in the sender's turns", drained),
];
hanging.stop(true);
rmSync(FOLDER, { recursive: true });
const heading = ["| processor time | before | after | ratio | at most 1.05 |", "| --- | --- | --- | --- | --- |"];
process.stdout.write(`${[...heading, ...rows].join("\n")}\n`);
