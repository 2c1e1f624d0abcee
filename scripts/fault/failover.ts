import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClusterShop, pick, postReward, startWatchingReceiver, timePage } from "./cluster-traffic.ts";
import { compiledProgram, type Server } from "./program.ts";
import { replicatedServer, replicatingBinaries } from "./replicated-server.ts";
import { startSwallowingProxy } from "./swallowing-proxy.ts";

const ROUNDS = Number(process.argv[2] ?? 8);
const NODES = 3;
/** Milliseconds. */
const POST_INTERVAL = 15;
const RECOVERY_LIMIT = 30_000;
const DRAIN_LIMIT = 60_000;
const NOBODY = 65_534;

const folder = mkdtempSync(join(tmpdir(), "sds-failover-"));
const servers = mkdtempSync(join(tmpdir(), "sds-replicated-"));
if (process.getuid?.() === 0) chownSync(servers, NOBODY, NOBODY);
const binaries = replicatingBinaries();
let [primary, standby] = [replicatedServer(binaries, servers, "one"), replicatedServer(binaries, servers, "two")];
await primary.start();
await standby.follow(primary);
await primary.waitForStandby(true);
const address = await startSwallowingProxy(primary.port);
const receiver = startWatchingReceiver();
const program = compiledProgram(folder, {
  SDS_MASTER_KEY_FILE: join(folder, "master.key"),
  SDS_PUBLIC_URL: "http://sds.test",
  SDS_EGRESS_ALLOW: "127.0.0.0/8",
  SDS_RETRY_WAITS: "200ms,400ms,1s,2s",
  SDS_DELIVERY_TIMEOUT: "2s",
  SDS_DATABASE_URL: `postgres://postgres@127.0.0.1:${address.port}/postgres`,
});

async function openShop(name: string): Promise<ClusterShop> {
  const domain = `${name}.myshopify.com`;
  await program.run(["shop", "add", domain]);
  await program.run(["webhook", "set", "--shop", domain, "--url", receiver.url, "--topics", "loyalty.reward_earned"]);
  const { key } = JSON.parse(await program.run(["key", "create", "--shop", domain, "--label", "Probe", "--json"]));
  const { secret } = JSON.parse(await program.run(["intake", "secret", "--shop", domain, "--json"]));
  return { domain, key, intakeSecret: secret };
}

const shops: ClusterShop[] = [];
for (const name of ["alpha", "beta", "gamma"]) shops.push(await openShop(name));
const nodes: Server[] = [];
process.on("exit", () => {
  for (const { pid } of nodes) process.kill(pid, "SIGKILL");
});
while (nodes.length < NODES) nodes.push(await program.serve());
const acknowledged = new Set<string>();
let isOver = false;
let posted = 0;

/** What is not acknowledged is posted again, as a sender does. */
async function post(): Promise<void> {
  const waiting: string[] = [];
  const underWay = new Set<Promise<void>>();
  while (!isOver) {
    const mark = waiting.shift() ?? String(++posted);
    const shop = shops[Number(mark) % shops.length] as ClusterShop;
    const sent = postReward(pick(nodes).url, shop, mark).then((isAcknowledged) => {
      underWay.delete(sent);
      if (isAcknowledged) acknowledged.add(mark);
      else waiting.push(mark);
    });
    underWay.add(sent);
    await Bun.sleep(underWay.size > 100 ? 200 : POST_INTERVAL);
  }
  await Promise.all(underWay);
}

/** Each node answers and takes records. @returns how long that took, in milliseconds */
async function untilRecovered(): Promise<number> {
  const began = performance.now();
  for (const [index, node] of nodes.entries()) {
    for (;;) {
      const mark = String(++posted);
      const [page, isTaken] = [
        await timePage(node.url, shops[0] as ClusterShop),
        await postReward(node.url, shops[Number(mark) % shops.length] as ClusterShop, mark),
      ];
      if (isTaken) acknowledged.add(mark);
      if (page !== undefined && isTaken) break;
      if (performance.now() - began > RECOVERY_LIMIT)
        throw new Error(`node ${index} does not go on:\n${node.log().slice(-2_000)}`);
      await Bun.sleep(50);
    }
  }
  return performance.now() - began;
}

async function failOver(comesBack: boolean): Promise<number> {
  await primary.kill();
  if (comesBack) {
    await primary.start({ readOnly: true });
    await Bun.sleep(2_000 + Math.random() * 3_000);
  } else await Bun.sleep(Math.random() * 3_000);
  await standby.promote();
  // The copy of the settings may name a standby.
  await standby.waitForStandby(false);
  address.target = standby.port;
  const tookMs = await untilRecovered();
  // The old one must not be in use any more.
  await primary.kill();
  [primary, standby] = [standby, primary];
  await standby.follow(primary);
  await primary.waitForStandby(true);
  await Bun.sleep(1_000);
  return tookMs;
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
  const posting = post();
  const recoveries: number[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    recoveries.push(await failOver(round % 2 === 0));
    process.stderr.write(`round ${round}: all nodes went on after ${recoveries.at(-1)?.toFixed(0)} ms\n`);
  }
  isOver = true;
  await posting;
  await untilDelivered();
  const doubled = [...receiver.ids].filter(([, ids]) => ids.size > 1);
  const problems = [...receiver.wrong, ...doubled.map(([mark, ids]) => `${mark} has ${ids.size} ids`)];
  process.stdout.write(
    `${ROUNDS} failovers, ${acknowledged.size} records acknowledged, all delivered; ${receiver.received()} attempts; ` +
      `all nodes went on ${Math.max(...recoveries).toFixed(0)} ms after the address moved, at most\n`,
  );
  if (problems.length > 0) {
    process.stdout.write(`${problems.length} problems:\n${problems.slice(0, 20).join("\n")}\n`);
    process.exitCode = 1;
  }
} finally {
  for (const node of nodes.splice(0)) await node.stop("SIGKILL");
  receiver.stop();
  address.stop();
  await Promise.all([primary.kill(), standby.kill()]);
  rmSync(folder, { recursive: true, force: true });
  rmSync(servers, { recursive: true, force: true });
}
