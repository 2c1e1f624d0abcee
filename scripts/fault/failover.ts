import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFaultyProxy } from "../../test/support/network-faults.ts";
import { openShops, startRewards } from "./cluster-rewards.ts";
import { type ClusterShop, pick, startWatchingReceiver, timePage } from "./cluster-traffic.ts";
import { compiledProgram, nodeEnv, type Server } from "./program.ts";
import { replicatedServer, replicatingBinaries } from "./replicated-server.ts";

const ROUNDS = Number(process.argv[2] ?? 8);
const NODES = 3;
const RECOVERY_LIMIT_MS = 30_000;
const NOBODY = 65_534;

const folder = mkdtempSync(join(tmpdir(), "sds-failover-"));
const servers = mkdtempSync(join(tmpdir(), "sds-replicated-"));
if (process.getuid?.() === 0) chownSync(servers, NOBODY, NOBODY);
const binaries = replicatingBinaries();
let [primary, standby] = [replicatedServer(binaries, servers, "one"), replicatedServer(binaries, servers, "two")];
await primary.start();
await standby.follow(primary);
await primary.waitForStandby(true);
const address = await openFaultyProxy(primary.port);
const receiver = startWatchingReceiver();
const program = compiledProgram(folder, {
  ...nodeEnv(folder),
  SDS_DATABASE_URL: `postgres://postgres@127.0.0.1:${address.port}/postgres`,
});

const shops = await openShops(program.run, receiver.url, ["alpha", "beta", "gamma"]);
const nodes: Server[] = [];
process.on("exit", () => {
  for (const { pid } of nodes) process.kill(pid, "SIGKILL");
});
while (nodes.length < NODES) nodes.push(await program.serve());
const rewards = startRewards(() => pick(nodes).url, shops, receiver);

/** Waits until each node answers and takes records. @returns milliseconds */
async function untilRecovered(): Promise<number> {
  const began = performance.now();
  for (const [index, node] of nodes.entries()) {
    for (;;) {
      const page = await timePage(node.url, shops[0] as ClusterShop);
      const isTaken = await rewards.postTo(node.url);
      if (page !== undefined && isTaken) break;
      if (performance.now() - began > RECOVERY_LIMIT_MS)
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
  // The new primary copied the old primary's settings, so its commits may wait for a standby. It has no standby yet.
  await standby.waitForStandby(false);
  address.target = standby.port;
  const tookMs = await untilRecovered();
  // From now on, nodes must not reach the old primary.
  await primary.kill();
  [primary, standby] = [standby, primary];
  await standby.follow(primary);
  await primary.waitForStandby(true);
  await Bun.sleep(1_000);
  return tookMs;
}

try {
  const recoveries: number[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    recoveries.push(await failOver(round % 2 === 0));
    process.stderr.write(`round ${round}: all nodes went on after ${recoveries.at(-1)?.toFixed(0)} ms\n`);
  }
  const problems = await rewards.end();
  process.stdout.write(
    `${ROUNDS} failovers, ${rewards.acknowledged.size} records acknowledged, all delivered; ${receiver.received()} attempts; ` +
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
