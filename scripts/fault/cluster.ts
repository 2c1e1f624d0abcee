import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { startPostgres } from "../../test/support/postgres-process.ts";
import { startOrderedPosts } from "./cluster-bodies.ts";
import { startChangeReader } from "./cluster-changes.ts";
import { startKeyRevocations } from "./cluster-keys.ts";
import { startPlatform } from "./cluster-platform.ts";
import {
  type ClusterNode,
  type ClusterShop,
  pick,
  postReward,
  startWatchingReceiver,
  timePage,
} from "./cluster-traffic.ts";
import { compiledProgram, type Server } from "./program.ts";
import { type SwallowingProxy, startSwallowingProxy } from "./swallowing-proxy.ts";

const ROUNDS = Number(process.argv[2] ?? 200);
/** Only faults whose names have this. */
const ONLY = process.argv[3] ?? "";
const NODES = 4;
const SHOPS = ["beta", "gamma", "delta", "epsilon", "zeta"];
/** These post large bodies. */
const BODY_SHOPS = ["eta", "theta"];
/** Seconds by which the clocks of the first nodes differ from the database's. Two is what is allowed. */
const CLOCKS = ["+1.7s", "-1.7s"];
const FAKE_TIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
const DISK_SIZE = "700m";
/** Milliseconds. */
const POST_INTERVAL = 15;
const FAULT_LENGTH = 3_000;
const HEALTHY_LIMIT = 1_000;
const DRAIN_LIMIT = 180_000;

interface Node extends ClusterNode {
  proxy: SwallowingProxy;
  server: Server | undefined;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Whether it should answer now. */
  isHealthy: boolean;
  /** How many faults it met. */
  faults: number;
}

const folder = mkdtempSync(join(tmpdir(), "sds-cluster-"));
const disk = mountDisk();
const postgres = await startPostgres({ max_wal_size: "64MB", min_wal_size: "32MB" });
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

/** A small disk for the server, which can be full. undefined where it cannot be mounted. */
function mountDisk(): string | undefined {
  const mounted = mkdtempSync(join(tmpdir(), "sds-disk-"));
  const { success } = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${DISK_SIZE},mode=755`, "tmpfs", mounted]);
  if (!success) return undefined;
  process.env["TMPDIR"] = mounted;
  return mounted;
}

async function openShops(names: readonly string[]): Promise<ClusterShop[]> {
  const shops: ClusterShop[] = [];
  for (const name of names) {
    const domain = `${name}.myshopify.com`;
    await run(["shop", "add", domain]);
    await run(["webhook", "set", "--shop", domain, "--url", receiver.url, "--topics", "loyalty.reward_earned"]);
    const { key } = JSON.parse(await run(["key", "create", "--shop", domain, "--label", "Probe", "--json"]));
    const { secret } = JSON.parse(await run(["intake", "secret", "--shop", domain, "--json"]));
    shops.push({ domain, key, intakeSecret: secret });
  }
  return shops;
}

async function openNode(index: number): Promise<Node> {
  const proxy = await startSwallowingProxy(Number(new URL(postgres.url).port));
  const clock = CLOCKS[index];
  const fakeTime = { LD_PRELOAD: FAKE_TIME, FAKETIME: clock ?? "", FAKETIME_DONT_FAKE_MONOTONIC: "1" };
  const program = compiledProgram(folder, {
    ...env,
    ...platform.env,
    ...(clock !== undefined && existsSync(FAKE_TIME) && fakeTime),
    SDS_DATABASE_URL: databaseUrl(proxy.port),
  });
  const killed = new Set<string>();
  const node: Node = {
    proxy,
    server: undefined,
    isHealthy: false,
    faults: 0,
    address: () => node.server?.url ?? "",
    isKilled: (address) => killed.has(address),
    async start() {
      node.server = await program.serve();
      node.isHealthy = true;
    },
    async kill() {
      killed.add(node.address());
      await node.server?.stop("SIGKILL");
    },
  };
  await node.start();
  return node;
}

const nodes: Node[] = [];
process.on("exit", () => {
  for (const { server } of nodes)
    if (server !== undefined && isRunning(server.pid)) process.kill(server.pid, "SIGKILL");
  if (disk === undefined) return;
  Bun.spawnSync(["umount", "--lazy", disk]);
  rmSync(disk, { recursive: true, force: true });
});
const platform = await startPlatform(folder, nodes);
const { run } = compiledProgram(folder, { ...env, ...platform.env, SDS_DATABASE_URL: postgres.url });
const shops = await openShops(SHOPS);
const bodyShops = await openShops(BODY_SHOPS);
await run(["shop", "connect", platform.domain, "--client-credentials"]);
await run(["sync", platform.domain]);
nodes.push(...(await Promise.all(Array.from({ length: NODES }, (_, index) => openNode(index)))));
const sql = new SQL(postgres.url, { max: 4, connectionTimeout: 5 });
await platform.begin();
const watchers = [
  ...bodyShops.map((shop) => startOrderedPosts(shop, nodes, sql)),
  startKeyRevocations(shops[0] as ClusterShop, nodes, run),
  ...(await sql.unsafe("SELECT id FROM shops")).map(({ id }: { id: string }) => startChangeReader(sql, Number(id))),
];
const acknowledged = new Set<string>();
const slow: string[] = [];
let slowest = 0;
let isOver = false;
let posted = 0;
let current = "";

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
      const { faults } = node;
      const took = await timePage(node.address(), pick(shops));
      // What was asked during a fault is answered after it.
      if (node.faults !== faults) continue;
      slowest = Math.max(slowest, took ?? 0);
      if (took === undefined || took > HEALTHY_LIMIT)
        slow.push(`node ${index} took ${took?.toFixed(0) ?? "too many"} ms (${current})`);
    }
    await Bun.sleep(50);
  }
}

const faults: Record<string, () => Promise<void>> = {
  async "kill a node"() {
    const node = pick(nodes);
    disturb(node);
    await node.kill();
    await Bun.sleep(Math.random() * FAULT_LENGTH);
    await node.start();
  },
  async "stop a node"() {
    const node = pick(nodes);
    disturb(node);
    await node.server?.stop("SIGTERM");
    await node.start();
  },
  async "swallow what a node sends"() {
    const node = pick(nodes);
    disturb(node);
    node.proxy.isSwallowing = true;
    await Bun.sleep(Math.random() * 4 * FAULT_LENGTH);
    node.proxy.isSwallowing = false;
    await untilHealthy(node);
  },
  async "hold a node still"() {
    const node = pick(nodes);
    disturb(node);
    process.kill(node.server?.pid ?? 0, "SIGSTOP");
    await Bun.sleep(Math.random() * 4 * FAULT_LENGTH);
    process.kill(node.server?.pid ?? 0, "SIGCONT");
    await untilHealthy(node);
  },
  ...(disk !== undefined && {
    async "fill the server's disk"() {
      for (const node of nodes) disturb(node);
      const ballast = join(disk, "ballast");
      Bun.spawnSync(["dd", "if=/dev/zero", `of=${ballast}`, "bs=1M"], { stderr: "ignore" });
      await Bun.sleep(Math.random() * 2 * FAULT_LENGTH);
      rmSync(ballast);
      // It may have ended.
      await postgres.stop("SIGKILL");
      await postgres.start();
      for (const node of nodes) await untilHealthy(node);
    },
  }),
  async "kill the server"() {
    for (const node of nodes) disturb(node);
    await postgres.stop("SIGKILL");
    await Bun.sleep(Math.random() * 1_000);
    await postgres.start();
    for (const node of nodes) await untilHealthy(node);
  },
};

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function disturb(node: Node): void {
  node.isHealthy = false;
  node.faults += 1;
}

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
    const name = pick(Object.keys(faults).filter((each) => each.includes(ONLY)));
    current = name ?? "";
    counts.set(name, (counts.get(name) ?? 0) + 1);
    await faults[name]?.();
    if (round % 20 === 0)
      process.stderr.write(`${round} rounds, ${acknowledged.size} acknowledged, ${receiver.received()} received\n`);
  }
  isOver = true;
  await traffic;
  await untilDelivered();
  const doubled = [...receiver.ids].filter(([, ids]) => ids.size > 1);
  const watched = [await platform.end(sql)];
  for (const watcher of watchers) watched.push(await watcher.end());
  const problems = [
    ...watched.flat(),
    ...receiver.wrong,
    ...slow,
    ...doubled.map(([mark, ids]) => `${mark} has ${ids.size} ids`),
  ];
  process.stdout.write(
    `${ROUNDS} rounds: ${[...counts].map(([name, count]) => `${name} ${count}`).join(", ")}\n` +
      `${acknowledged.size} records acknowledged, all delivered; ${receiver.received()} attempts; ` +
      `slowest answer of a healthy node ${slowest.toFixed(0)} ms\n` +
      `${platform.count()} changes at the platform; large bodies, revoked keys, rows read by their change numbers: ` +
      `${watchers.map((watcher) => watcher.count()).join(", ")}\n`,
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
  await platform.stop();
  await sql.close({ timeout: 0 });
  await postgres.stop("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}
