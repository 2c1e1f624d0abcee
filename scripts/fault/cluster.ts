import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "../../test/support/postgres-process.ts";
import { type ClusterShop, postReward, startWatchingReceiver, timePage } from "./cluster-traffic.ts";
import { compiledProgram, type Server } from "./program.ts";
import { type SwallowingProxy, startSwallowingProxy } from "./swallowing-proxy.ts";

const ROUNDS = Number(process.argv[2] ?? 200);
const NODES = 3;
const SHOPS = ["alpha", "beta", "gamma", "delta", "epsilon"];
/** Milliseconds. */
const POST_INTERVAL = 15;
const FAULT_LENGTH = 3_000;
const HEALTHY_LIMIT = 1_000;
const DRAIN_LIMIT = 180_000;

interface Node {
  proxy: SwallowingProxy;
  server: Server | undefined;
  start(): Promise<void>;
  /** Whether it should answer now. */
  isHealthy: boolean;
}

const folder = mkdtempSync(join(tmpdir(), "sds-cluster-"));
const postgres = await startPostgres();
const receiver = startWatchingReceiver();
const env = {
  SDS_MASTER_KEY_FILE: join(folder, "master.key"),
  SDS_PUBLIC_URL: "http://sds.test",
  SDS_EGRESS_ALLOW: "127.0.0.0/8",
  SDS_RETRY_WAITS: "200ms,400ms,1s,2s",
  SDS_DELIVERY_TIMEOUT: "2s",
};
const databaseUrl = (port: number | string) => {
  const url = new URL(postgres.url);
  url.port = String(port);
  return url.href;
};

async function openShops(): Promise<ClusterShop[]> {
  const { run } = compiledProgram(folder, { ...env, SDS_DATABASE_URL: postgres.url });
  const shops: ClusterShop[] = [];
  for (const name of SHOPS) {
    const domain = `${name}.myshopify.com`;
    await run(["shop", "add", domain]);
    await run(["webhook", "set", "--shop", domain, "--url", receiver.url, "--topics", "loyalty.reward_earned"]);
    const { key } = JSON.parse(await run(["key", "create", "--shop", domain, "--label", "Probe", "--json"]));
    const { secret } = JSON.parse(await run(["intake", "secret", "--shop", domain, "--json"]));
    shops.push({ domain, key, intakeSecret: secret });
  }
  return shops;
}

async function openNode(): Promise<Node> {
  const proxy = await startSwallowingProxy(Number(new URL(postgres.url).port));
  const program = compiledProgram(folder, { ...env, SDS_DATABASE_URL: databaseUrl(proxy.port) });
  const node: Node = {
    proxy,
    server: undefined,
    isHealthy: false,
    async start() {
      node.server = await program.serve();
      node.isHealthy = true;
    },
  };
  await node.start();
  return node;
}

const shops = await openShops();
const nodes = await Promise.all(Array.from({ length: NODES }, openNode));
const acknowledged = new Set<string>();
const slow: string[] = [];
let slowest = 0;
let isOver = false;
let posted = 0;
const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)] as T;

/** One record after another, to any node that runs. What is not acknowledged is posted again, as a sender does. */
async function post(): Promise<void> {
  const waiting: string[] = [];
  const underWay = new Set<Promise<void>>();
  while (!isOver) {
    if (waiting.length === 0) waiting.push(String(++posted));
    const mark = waiting.shift() ?? "";
    const address = pick(nodes).server?.url ?? "";
    const shop = shops[Number(mark) % shops.length] as ClusterShop;
    const sent = postReward(address, shop, mark).then((isAcknowledged) => {
      underWay.delete(sent);
      if (isAcknowledged) acknowledged.add(mark);
      else waiting.push(mark);
    });
    underWay.add(sent);
    await Bun.sleep(underWay.size > 200 ? 200 : POST_INTERVAL);
  }
  await Promise.all(underWay);
}

/** Asks the nodes that nothing is wrong with. */
async function probe(): Promise<void> {
  while (!isOver) {
    for (const [index, node] of nodes.entries()) {
      if (!node.isHealthy) continue;
      const took = await timePage(node.server?.url ?? "", pick(shops));
      if (!node.isHealthy) continue;
      slowest = Math.max(slowest, took ?? 0);
      if (took === undefined || took > HEALTHY_LIMIT) slow.push(`node ${index}: ${took?.toFixed(0) ?? "no answer"}`);
    }
    await Bun.sleep(50);
  }
}

const faults: Record<string, () => Promise<void>> = {
  async "kill a node"() {
    const node = pick(nodes);
    node.isHealthy = false;
    await node.server?.stop("SIGKILL");
    await Bun.sleep(Math.random() * FAULT_LENGTH);
    await node.start();
  },
  async "stop a node"() {
    const node = pick(nodes);
    node.isHealthy = false;
    await node.server?.stop("SIGTERM");
    await node.start();
  },
  async "swallow what a node sends"() {
    const node = pick(nodes);
    node.isHealthy = false;
    node.proxy.isSwallowing = true;
    await Bun.sleep(Math.random() * 4 * FAULT_LENGTH);
    node.proxy.isSwallowing = false;
    await untilHealthy(node);
  },
  async "hold a node still"() {
    const node = pick(nodes);
    node.isHealthy = false;
    process.kill(node.server?.pid ?? 0, "SIGSTOP");
    await Bun.sleep(Math.random() * 4 * FAULT_LENGTH);
    process.kill(node.server?.pid ?? 0, "SIGCONT");
    await untilHealthy(node);
  },
  async "kill the server"() {
    for (const node of nodes) node.isHealthy = false;
    await postgres.stop("SIGKILL");
    await Bun.sleep(Math.random() * 1_000);
    await postgres.start();
    for (const node of nodes) await untilHealthy(node);
  },
};

async function untilHealthy(node: Node): Promise<void> {
  const began = performance.now();
  for (;;) {
    const took = await timePage(node.server?.url ?? "", pick(shops));
    if (took !== undefined && took < HEALTHY_LIMIT) break;
    if (performance.now() - began > 60_000) throw new Error("a node does not recover");
  }
  node.isHealthy = true;
}

async function untilDelivered(): Promise<void> {
  const began = performance.now();
  const missing = () => [...acknowledged].filter((mark) => !receiver.ids.has(mark));
  while (missing().length > 0) {
    if (performance.now() - began > DRAIN_LIMIT)
      throw new Error(`${missing().length} records were acknowledged and never delivered, such as ${missing()[0]}`);
    await Bun.sleep(200);
  }
}

try {
  const traffic = Promise.all([post(), probe()]);
  const counts = new Map<string, number>();
  for (let round = 1; round <= ROUNDS; round += 1) {
    const name = pick(Object.keys(faults));
    counts.set(name, (counts.get(name) ?? 0) + 1);
    await faults[name]?.();
    if (round % 20 === 0)
      process.stderr.write(`${round} rounds, ${acknowledged.size} acknowledged, ${receiver.received()} received\n`);
  }
  isOver = true;
  await traffic;
  await untilDelivered();
  const doubled = [...receiver.ids].filter(([, ids]) => ids.size > 1);
  const problems = [...receiver.wrong, ...slow, ...doubled.map(([mark, ids]) => `${mark} has ${ids.size} ids`)];
  process.stdout.write(
    `${ROUNDS} rounds: ${[...counts].map(([name, count]) => `${name} ${count}`).join(", ")}\n` +
      `${acknowledged.size} records acknowledged, all delivered; ${receiver.received()} attempts; ` +
      `slowest answer of a healthy node ${slowest.toFixed(0)} ms\n`,
  );
  if (problems.length > 0) {
    process.stdout.write(`${problems.length} problems:\n${problems.slice(0, 20).join("\n")}\n`);
    process.exitCode = 1;
  }
} finally {
  for (const node of nodes) {
    if (node.server !== undefined) process.kill(node.server.pid, "SIGCONT");
    await node.server?.stop("SIGKILL");
    node.proxy.stop();
  }
  receiver.stop();
  await postgres.stop("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}
