/**
 * Measures the same program on SQLite and on PostgreSQL, side by side: the processor time of a page, a posted event and
 * a delivery. Also counts their statements and round trips. `--short` measures fewer and shorter rounds. `--operations`
 * only counts statements and round trips.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import { startHanging } from "./endpoint.ts";
import { operationTable } from "./operations.ts";
import * as queued from "./queued.ts";
import { ask, type Server, startServer } from "./servers.ts";
import * as shops from "./shops.ts";
import {
  type BenchServer,
  type Cost,
  costOf,
  medianCost,
  type Side,
  sqliteSide,
  startBenchServer,
  startSide,
} from "./sides.ts";
import { postAll, type SignedPost, signedPosts } from "./signed-posts.ts";
import { machineLine, needTwoCores } from "./table.ts";

const { values } = parseArgs({
  options: { short: { type: "boolean", default: false }, operations: { type: "boolean", default: false } },
});
const ROWS = 100_000;
const ROUNDS = values.short ? 3 : 7;
const PAGE_SECONDS = values.short ? 2 : 3;
const CONNECTIONS = 16;
const POSTS_PER_ROUND = 1_500;
const ALONE_PER_ROUND = 400;
const SHOPS = 50;
const EVENTS_PER_SHOP = 100;
const DOMAIN = "bench.myshopify.com";

/** The costs of one side of a comparison, by operation. */
type Costs<Name extends string> = Record<Name, Cost>;

/**
 * Runs the measurements in turn for some rounds, because the speed of the machine varies. The first round is not
 * counted.
 */
async function inTurn<Name extends string>(
  rounds: number,
  runs: Record<Name, (round: number) => Promise<Cost>>,
): Promise<Costs<Name>> {
  const names = Object.keys(runs) as Name[];
  const measured = new Map<Name, Cost[]>(names.map((name) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const name of names) {
      const cost = await runs[name](round);
      if (round > 0) measured.get(name)?.push(cost);
    }
  }
  const costs = Object.fromEntries(names.map((name) => [name, medianCost(measured.get(name) ?? [])])) as Costs<Name>;
  shops.tell(JSON.stringify(costs));
  return costs;
}

/** Fills both engines with the same shop. Its endpoint never answers, so sending is not measured. */
async function prepareShop(postgres: BenchServer, endpoint: string) {
  const filled = await shops.filledShop(ROWS);
  const folder = shops.copyFolder(filled.folder, "dist/bench/scale");
  const sds = [shops.SDS, "--data", folder];
  await $`${sds} webhook set --url ${endpoint} --all-topics`.quiet();
  const { secret } = await $`${sds} intake secret --json`.quiet().json();
  const others = await queued.addEmptyShops(folder, SHOPS, endpoint);
  await postgres.fill("scale", shops.SDS, folder);
  return {
    secret: secret as string,
    others,
    key: filled.key,
    paths: (limit: number) => shops.randomPages(filled, limit),
    sqlite: sqliteSide(folder),
    postgres: postgres.side("scale", folder),
  };
}

type Prepared = Awaited<ReturnType<typeof prepareShop>>;

async function measurePages(shop: Prepared, limit: number): Promise<Costs<"sqlite" | "postgres" | "twoNodes">> {
  await using sqlite = await startSide(shops.SDS, shop.sqlite);
  await using postgres = await startSide(shops.SDS, shop.postgres);
  await using second = await startSide(shops.SDS, shop.postgres);
  const paths = shop.paths(limit);
  const pages = (servers: readonly Server[], side: Side) =>
    costOf(servers, side, async () => {
      const rates = await Promise.all(
        servers.map((server) => ask({ server, key: shop.key, paths }, PAGE_SECONDS, CONNECTIONS / servers.length)),
      );
      return { count: rates.reduce((sum, rate) => sum + rate * PAGE_SECONDS, 0), seconds: PAGE_SECONDS };
    });
  return await inTurn(ROUNDS, {
    sqlite: () => pages([sqlite], shop.sqlite),
    postgres: () => pages([postgres], shop.postgres),
    twoNodes: () => pages([postgres, second], shop.postgres),
  });
}

/** @param alone whether each event waits for the previous event */
async function measurePosts(shop: Prepared, posts: Iterator<SignedPost>, alone: boolean) {
  await using sqlite = await startSide(shops.SDS, shop.sqlite);
  await using postgres = await startSide(shops.SDS, shop.postgres);
  await using second = await startSide(shops.SDS, shop.postgres);
  const count = alone ? ALONE_PER_ROUND : POSTS_PER_ROUND;
  const connections = alone ? 1 : CONNECTIONS;
  const intake = (servers: readonly Server[], side: Side, batch: readonly SignedPost[]) =>
    costOf(servers, side, () => postAll(servers, batch, connections));
  const next = () => Array.from({ length: count }, () => posts.next().value as SignedPost);
  let batch: SignedPost[] = [];
  return await inTurn(ROUNDS, {
    sqlite: () => {
      batch = next();
      return intake([sqlite], shop.sqlite, batch);
    },
    postgres: () => intake([postgres], shop.postgres, batch),
    twoNodes: () =>
      alone ? intake([second], shop.postgres, next()) : intake([postgres, second], shop.postgres, next()),
  });
}

/** Yields the posts of one measurement: one post of each shop in turn. */
function* postsOf(senders: Prepared["others"]): Generator<SignedPost> {
  const each = Math.ceil((2 * (ROUNDS + 1) * POSTS_PER_ROUND) / senders.length);
  const posts = senders.map(({ domain, secret }) => signedPosts(domain, secret, each).values());
  for (let index = 0; index < each; index += 1) for (const own of posts) yield own.next().value as SignedPost;
}

async function measureDeliveries(server: BenchServer): Promise<Costs<"sqlite" | "postgres">> {
  await using sink = await startServer(["taskset", "-c", "1", "bun", join(import.meta.dir, "endpoint.ts")]);
  const group = { name: "shop", count: SHOPS, endpoint: `${sink.url}/`, events: EVENTS_PER_SHOP };
  const folder = await queued.makeFolder("scale", [group]);
  await server.fill("queued", shops.SDS, folder);
  const drain = (side: Side, isDrained: () => Promise<boolean>) =>
    costOfProgram(side, async () => {
      while (!(await isDrained())) await Bun.sleep(50);
      return SHOPS * EVENTS_PER_SHOP;
    });
  const isDue = "SELECT 1 FROM deliveries WHERE claimable_at IS NOT NULL LIMIT 1";
  return await inTurn(Math.min(3, ROUNDS), {
    async sqlite() {
      const copy = shops.copyFolder(folder, `${folder}-drained`);
      return drain(sqliteSide(copy), async () => !queued.hasRow(copy, isDue));
    },
    async postgres() {
      await server.clone("drained", "queued");
      await using sql = server.sql("drained");
      return await drain(server.side("drained", folder), async () => (await sql.unsafe(isDue)).length === 0);
    },
  });
}

/** Starts sds, and measures its costs without a warm-up. */
async function costOfProgram(side: Side, run: () => Promise<number>): Promise<Cost> {
  await using server = await startSide(shops.SDS, side);
  return await costOf([server], side, async () => {
    const start = performance.now();
    return { count: await run(), seconds: (performance.now() - start) / 1_000 };
  });
}

function microseconds(value: number): string {
  return `${Math.round(value).toLocaleString("en")} µs`;
}

function costRow(name: string, sqlite: Cost, postgres: Cost, limit?: number): string {
  const ratio = postgres.sds / sqlite.sds;
  const met =
    limit === undefined ? "" : ratio <= limit ? "yes" : `no, ${((ratio / limit - 1) * 100).toFixed(0)} % over`;
  const rates = [sqlite, postgres].map(({ perSecond }) => `${Math.round(perSecond).toLocaleString("en")}/s`);
  const cells = [
    name,
    microseconds(sqlite.sds),
    microseconds(postgres.sds),
    ratio.toFixed(2),
    limit === undefined ? "" : `at most ${limit}`,
    met,
    microseconds(postgres.database),
    ...rates,
  ];
  return `| ${cells.join(" | ")} |`;
}

const COST_HEADING = [
  "| processor time | SQLite | PostgreSQL | ratio | target | met | PostgreSQL's own | SQLite | PostgreSQL |",
  "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
].join("\n");

function nodeRow(name: string, one: Cost, two: Cost): string {
  const cells = [
    name,
    `${microseconds(one.sds)}, ${microseconds(one.database)}`,
    `${microseconds(two.sds)}, ${microseconds(two.database)}`,
    ((two.sds + two.database) / (one.sds + one.database)).toFixed(2),
    `${Math.round(one.perSecond).toLocaleString("en")}/s`,
    `${Math.round(two.perSecond).toLocaleString("en")}/s`,
  ];
  return `| ${cells.join(" | ")} |`;
}

const NODE_HEADING = [
  "| processor time of sds and PostgreSQL | one node | two nodes | ratio of the sums | one node | two nodes |",
  "| --- | --- | --- | --- | --- | --- |",
].join("\n");

needTwoCores();
process.env["SDS_EGRESS_ALLOW"] = "127.0.0.0/8";
await shops.buildProgram();
using hanging = startHanging();
const server = await startBenchServer();
shops.tell("Measuring ...");
const shop = await prepareShop(server, hanging.url);
if (values.operations) {
  const few = signedPosts(DOMAIN, shop.secret, 2_000).values();
  const counted = await operationTable({
    server,
    side: shop.postgres,
    key: shop.key,
    paths: shop.paths(50),
    posts: few,
  });
  process.stdout.write(`${counted}\n`);
  await server.stop();
  process.exit(0);
}
const fifty = await measurePages(shop, 50);
const most = await measurePages(shop, 250);
const posts = signedPosts(DOMAIN, shop.secret, 2 * (ROUNDS + 1) * (POSTS_PER_ROUND + ALONE_PER_ROUND) + 2_000).values();
const single = await measurePosts(shop, posts, true);
const many = await measurePosts(shop, posts, false);
const sent = await measureDeliveries(server);
const operations = await operationTable({ server, side: shop.postgres, key: shop.key, paths: shop.paths(50), posts });
// Measured last: sds keeps retrying the webhooks of these shops, which would disturb later measurements.
const spread = await measurePosts(shop, postsOf(shop.others), false);

const lines = [
  `${ROWS.toLocaleString("en")} subscriptions of one shop, medians of ${ROUNDS} rounds in alternation; ${machineLine(`PostgreSQL ${server.version}`)}`,
  "",
  COST_HEADING,
  costRow(`Page of 50, ${CONNECTIONS} connections`, fifty.sqlite, fifty.postgres, 2),
  costRow(`Page of 250, ${CONNECTIONS} connections`, most.sqlite, most.postgres),
  costRow(`Posted event, ${CONNECTIONS} connections`, many.sqlite, many.postgres, 1.5),
  costRow("Posted event, one after the other", single.sqlite, single.postgres, 1.5),
  costRow(`Posted event of ${SHOPS} shops, ${CONNECTIONS} connections`, spread.sqlite, spread.postgres),
  costRow(`Delivery of ${(SHOPS * EVENTS_PER_SHOP).toLocaleString("en")} that wait`, sent.sqlite, sent.postgres),
  "",
  NODE_HEADING,
  nodeRow("Page of 50", fifty.postgres, fifty.twoNodes),
  nodeRow("Page of 250", most.postgres, most.twoNodes),
  nodeRow("Posted event", many.postgres, many.twoNodes),
  nodeRow(`Posted event of ${SHOPS} shops`, spread.postgres, spread.twoNodes),
  "",
  operations,
];
process.stdout.write(`${lines.join("\n")}\n`);
await server.stop();
rmSync("dist/bench/scale", { recursive: true });
