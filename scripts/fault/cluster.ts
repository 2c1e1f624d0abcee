import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { startPostgres } from "../../test/support/postgres-process.ts";
import { startChangeReader } from "./cluster-changes.ts";
import { startKeyRevocations } from "./cluster-keys.ts";
import { startPlatform } from "./cluster-platform.ts";
import { openShops, startRewards } from "./cluster-rewards.ts";
import { type ClusterShop, pick, startWatchingReceiver, timePage } from "./cluster-traffic.ts";
import { type FaultyNode, openNode } from "./faulty-node.ts";
import { compiledProgram, nodeEnv } from "./program.ts";

const ROUNDS = Number(process.argv[2] ?? 200);
/** Run only faults whose names contain this text. */
const ONLY = process.argv[3] ?? "";
const NODES = 4;
const SHOPS = ["beta", "gamma", "delta", "epsilon", "zeta"];
const DISK_SIZE = "700m";
const FAULT_MS = 3_000;
const HEALTHY_LIMIT_MS = 1_000;

const folder = mkdtempSync(join(tmpdir(), "sds-cluster-"));
const disk = mountDisk();
const postgres = await startPostgres({ max_wal_size: "64MB", min_wal_size: "32MB" });
const receiver = startWatchingReceiver();

/** Mounts a small disk for the server. The test can fill this disk. @returns undefined if we may not mount */
function mountDisk(): string | undefined {
  const mounted = mkdtempSync(join(tmpdir(), "sds-disk-"));
  const { success } = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${DISK_SIZE},mode=755`, "tmpfs", mounted]);
  if (!success) return undefined;
  process.env["TMPDIR"] = mounted;
  return mounted;
}

const nodes: FaultyNode[] = [];
process.on("exit", () => {
  for (const { server } of nodes)
    if (server !== undefined && isRunning(server.pid)) process.kill(server.pid, "SIGKILL");
  if (disk === undefined) return;
  Bun.spawnSync(["umount", "--lazy", disk]);
  rmSync(disk, { recursive: true, force: true });
});
const platform = await startPlatform(folder, nodes);
const env = { ...nodeEnv(folder), ...platform.env };
const { run } = compiledProgram(folder, { ...env, SDS_DATABASE_URL: postgres.url });
const shops = await openShops(run, receiver.url, SHOPS);
await run(["shop", "connect", platform.domain, "--client-credentials"]);
await run(["sync", platform.domain]);
const openings = Array.from({ length: NODES }, (_, index) => openNode(folder, postgres.url, env, index));
nodes.push(...(await Promise.all(openings)));
const sql = new SQL(postgres.url, { max: 4, connectionTimeout: 5 });
await platform.begin();
const watchers = [
  startKeyRevocations(shops[0] as ClusterShop, nodes, run),
  ...(await sql.unsafe("SELECT id FROM shops")).map(({ id }: { id: string }) => startChangeReader(sql, Number(id))),
];
const rewards = startRewards(() => pick(nodes).address(), shops, receiver);
const slow: string[] = [];
const slowest = { page: 0, post: 0 };
let isOver = false;
let current = "";

/** Reads pages from healthy nodes and posts records to them. */
async function probe(): Promise<void> {
  while (!isOver) {
    for (const [index, node] of nodes.entries()) {
      if (!node.isHealthy) continue;
      await time(index, "page", () => timePage(node.address(), pick(shops)));
      await time(index, "post", () => timePost(node.address()));
    }
    await Bun.sleep(50);
  }
}

async function time(index: number, kind: "page" | "post", ask: () => Promise<number | undefined>): Promise<void> {
  const node = nodes[index] as FaultyNode;
  const { faults } = node;
  const took = await ask();
  // Not counted: a fault during the request may have slowed the answer.
  if (node.faults !== faults || !node.isHealthy) return;
  slowest[kind] = Math.max(slowest[kind], took ?? 0);
  if (took === undefined || took > HEALTHY_LIMIT_MS)
    slow.push(`node ${index} took ${took?.toFixed(0) ?? "too many"} ms for a ${kind} (${current})`);
}

async function timePost(address: string): Promise<number | undefined> {
  const began = performance.now();
  return (await rewards.postTo(address)) ? performance.now() - began : undefined;
}

const faults: Record<string, () => Promise<void>> = {
  async "kill a node"() {
    const node = pick(nodes);
    disturb(node);
    await node.kill();
    await Bun.sleep(Math.random() * FAULT_MS);
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
    await Bun.sleep(Math.random() * 4 * FAULT_MS);
    node.proxy.isSwallowing = false;
    await untilHealthy(node);
  },
  async "hold a node still"() {
    const node = pick(nodes);
    disturb(node);
    process.kill(node.server?.pid ?? 0, "SIGSTOP");
    await Bun.sleep(Math.random() * 4 * FAULT_MS);
    process.kill(node.server?.pid ?? 0, "SIGCONT");
    await untilHealthy(node);
  },
  ...(disk !== undefined && {
    async "fill the server's disk"() {
      for (const node of nodes) disturb(node);
      const ballast = join(disk, "ballast");
      Bun.spawnSync(["dd", "if=/dev/zero", `of=${ballast}`, "bs=1M"], { stderr: "ignore" });
      await Bun.sleep(Math.random() * 2 * FAULT_MS);
      rmSync(ballast);
      // The full disk may have ended the server, so it is restarted.
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

function disturb(node: FaultyNode): void {
  node.isHealthy = false;
  node.faults += 1;
}

async function untilHealthy(node: FaultyNode): Promise<void> {
  const began = performance.now();
  for (;;) {
    const took = await timePage(node.server?.url ?? "", pick(shops));
    if (took !== undefined && took < HEALTHY_LIMIT_MS) break;
    if (performance.now() - began > 60_000) throw new Error("a node does not recover");
  }
  node.isHealthy = true;
}

try {
  const probing = probe();
  const counts = new Map<string, number>();
  for (let round = 1; round <= ROUNDS; round += 1) {
    const name = pick(Object.keys(faults).filter((each) => each.includes(ONLY)));
    current = name ?? "";
    counts.set(name, (counts.get(name) ?? 0) + 1);
    await faults[name]?.();
    if (round % 20 === 0)
      process.stderr.write(
        `${round} rounds, ${rewards.acknowledged.size} acknowledged, ${receiver.received()} received\n`,
      );
  }
  isOver = true;
  await probing;
  const watched = [await rewards.end(), await platform.end(sql)];
  for (const watcher of watchers) watched.push(await watcher.end());
  const problems = [...watched.flat(), ...slow];
  process.stdout.write(
    `${ROUNDS} rounds: ${[...counts].map(([name, count]) => `${name} ${count}`).join(", ")}\n` +
      `${rewards.acknowledged.size} records acknowledged, all delivered; ${receiver.received()} attempts; ` +
      `slowest page of a healthy node ${slowest.page.toFixed(0)} ms, slowest post ${slowest.post.toFixed(0)} ms\n` +
      `${platform.count()} changes at the platform; revoked keys, rows read by their change numbers: ` +
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
