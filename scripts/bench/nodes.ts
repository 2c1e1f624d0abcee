/**
 * Measures how the intake grows with the number of nodes on one PostgreSQL: accepted posts a second, and processor time
 * of each post. Clients are assigned to the nodes in turn, as by a balancer. A proxy adds ROUND_TRIP_MS to each round
 * trip to the database. Without `SDS_NODE_URL`, each node commits all posts that it gets. With `SDS_NODE_URL`, a node
 * passes posts on to the shop's node.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { $ } from "bun";
import { openFaultyProxy } from "../../test/support/network-faults.ts";
import { freePort } from "../../test/support/postgres-process.ts";
import { type Server, startServer } from "./servers.ts";
import { type Cost, costOf, medianCost, startBenchServer } from "./sides.ts";
import { postAll, type SignedPost, signedPosts } from "./signed-posts.ts";
import { machineLine } from "./table.ts";

const ROUND_TRIP_MS = 2;
const CLIENTS = 32;
const POSTS = 2_000;
const ROUNDS = 3;
const NODES = [1, 2, 4];
const SHOPS = [1, 24];

const sds = join(import.meta.dir, "../../dist/sds");
const folder = mkdtempSync(join(tmpdir(), "sds-nodes-"));
const server = await startBenchServer();

/** Makes posts of all shops in turn. */
async function postsOf(env: Record<string, string>, shops: number): Promise<SignedPost[]> {
  const run = (...words: string[]) => $`${sds} --data ${folder} ${words}`.env({ ...process.env, ...env }).quiet();
  const posts: SignedPost[][] = [];
  for (let number = 0; number < shops; number += 1) {
    const domain = `bench-${number}.myshopify.com`;
    await run("shop", "add", domain, "--plan", "pro");
    const { secret } = (await run("intake", "secret", "--shop", domain, "--json").json()) as { secret: string };
    posts.push(signedPosts(domain, secret, Math.ceil((POSTS * (ROUNDS + 1)) / shops)));
  }
  return Array.from({ length: posts[0]?.length ?? 0 }, (_, index) => posts.flatMap((own) => own[index] ?? [])).flat();
}

async function measure(nodes: number, shops: number, passesOn: boolean): Promise<Cost> {
  const name = `nodes_${nodes}_${shops}_${passesOn}`;
  await server.sql("postgres").unsafe(`CREATE DATABASE ${name}`);
  const side = server.side(name, folder);
  const posts = await postsOf(side.env, shops);
  const proxies = await Promise.all(Array.from({ length: nodes }, () => openFaultyProxy(server.port)));
  const servers: Server[] = [];
  for (const proxy of proxies) {
    proxy.delayMs = ROUND_TRIP_MS;
    const address = Object.assign(new URL(server.addressOf(name)), { port: String(proxy.port) }).href;
    const port = String(freePort());
    const url = passesOn ? { SDS_NODE_URL: `http://127.0.0.1:${port}` } : {};
    const env = { ...side.env, ...url, SDS_DATABASE_URL: address };
    servers.push(await startServer([sds, "--data", folder, "serve", "--port", port], env));
  }
  // Waits until the nodes know of each other.
  await Bun.sleep(3_000);
  const costs: Cost[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const part = posts.slice(round * POSTS, (round + 1) * POSTS);
    const cost = await costOf(servers, side, () => postAll(servers, part, CLIENTS));
    if (round > 0) costs.push(cost);
  }
  for (const each of servers) await each[Symbol.asyncDispose]();
  for (const proxy of proxies) proxy.stop();
  return medianCost(costs);
}

const print = (line: string) => process.stdout.write(`${line}\n`);
print(`${machineLine()}\n`);
print("| nodes | shops | passes on | accepted a second | µs of sds | µs of PostgreSQL |");
print("|---|---|---|---|---|---|");
for (const shops of SHOPS)
  for (const nodes of NODES)
    for (const passesOn of nodes === 1 ? [false] : [false, true]) {
      const { perSecond, sds: own, database } = await measure(nodes, shops, passesOn);
      const figures = [perSecond, own, database].map(Math.round);
      print(`| ${[nodes, shops, passesOn ? "yes" : "no", ...figures].join(" | ")} |`);
    }
await server.stop();
rmSync(folder, { recursive: true, force: true });
