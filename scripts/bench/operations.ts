import { readFileSync } from "node:fs";
import { join } from "node:path";
import { hashKey } from "../../src/domain/key.ts";
import { parseCursor } from "../../src/domain/pages/cursor.ts";
import type { Awaitable } from "../../src/lib/waits.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { UPGRADE } from "../../test/support/open-store.ts";
import { median, type Server } from "./servers.ts";
import { SDS } from "./shops.ts";
import { type BenchServer, type Side, startSide } from "./sides.ts";
import { post, type SignedPost } from "./signed-posts.ts";
import { type Said, startWireCounter } from "./wire-counter.ts";

interface Setting {
  server: BenchServer;
  side: Side;
  key: string;
  /** A file with paths of pages. */
  paths: string;
  posts: Iterator<SignedPost>;
}

const TIMES = 21;
const GROUP = 16;
const LEASE_MS = 15_000;

/** Counts the statements and round trips of each operation on the wire. @returns a Markdown table of the medians */
export async function operationTable({ server, side, key, paths, posts }: Setting): Promise<string> {
  const counter = await startWireCounter(server.port);
  const throughProxy = server.addressOf("scale").replace(`:${server.port}/`, `:${counter.port}/`);
  const nodeSide = { ...side, env: { ...side.env, SDS_DATABASE_URL: throughProxy } };
  const rows: string[] = [];
  const add = async (name: string, run: () => Awaitable<unknown>) => {
    rows.push(rowOf(name, await counted(counter.said, run)));
  };
  {
    await using node = await startSide(SDS, nodeSide);
    await countRequests(node, { key, paths, posts }, add);
  }
  const store = await openStore({
    folder: side.folder,
    masterKeyFile: join(side.folder, "master.key"),
    busyTimeoutMs: 2_000,
    ...UPGRADE,
    server: { url: throughProxy, passwordFile: null, sleep: Bun.sleep },
  });
  await countOperations(store, key, paths, add);
  await store.close();
  counter.stop();
  const heading = ["| operation | statements | round trips |", "| --- | --- | --- |"];
  return [...heading, ...rows].join("\n");
}

type Add = (name: string, run: () => Awaitable<unknown>) => Promise<void>;

/** Counts what `sds serve` does for a request. Background jobs disturb some of the counts, but not their median. */
async function countRequests(node: Server, of: Pick<Setting, "key" | "paths" | "posts">, add: Add): Promise<void> {
  const pages = readFileSync(of.paths, "utf8").split("\n").values();
  const headers = { Authorization: `Bearer ${of.key}` };
  const nextPost = () => of.posts.next().value as SignedPost;
  await add("page over HTTP, with the look-up of its key", async () => {
    await (await fetch(`${node.url}${pages.next().value}`, { headers })).arrayBuffer();
  });
  await add("posted event over HTTP, alone", () => post(node, nextPost()));
  await add(`${GROUP} posted events over HTTP, at the same time`, () =>
    Promise.all(Array.from({ length: GROUP }, () => post(node, nextPost()))),
  );
}

async function countOperations(store: Store, key: string, paths: string, add: Add): Promise<void> {
  const hash = hashKey(key);
  const shopId = (await store.keys.find(hash))?.shopId ?? 0;
  await add("API key, looked up", () => store.keys.find(hash));
  const [, cursor = ""] = /cursor=(\S+)/.exec(readFileSync(paths, "utf8")) ?? [];
  const after = parseCursor(decodeURIComponent(cursor)) ?? null;
  await add("page of the store", () => store.pages.list(shopId, "subscriptions", 50, after));
  let received = 0;
  const receipt = () => {
    received += 1;
    const rest = { topic: "orders/create", subject: `bench ${received}`, needsPlatform: true, body: "{}" };
    return { shopId, webhookId: `bench-${received}`, triggeredAt: Date.now(), ...rest };
  };
  await add("inbox, one platform webhook received", () => store.inbox.receive([receipt()], Date.now()));
  await add(`inbox, ${GROUP} platform webhooks received together`, () =>
    store.inbox.receive(Array.from({ length: GROUP }, receipt), Date.now()),
  );
  let claims: Awaited<ReturnType<Store["deliveries"]["recordAndClaim"]>>["claimed"] = [];
  await add(`the sender's turn: what is due, ${GROUP} results recorded, ${GROUP} deliveries claimed`, async () => {
    const now = Date.now();
    await store.deliveries.dueQueues(now);
    const outcome = { statusCode: 200, error: null };
    const ended = claims.map((claim) => ({ claim, outcome, startedAt: now, duration: 5 }));
    const turn = await store.deliveries.recordAndClaim(
      ended,
      [{ shopId, kind: "webhook", count: GROUP }],
      now,
      now + LEASE_MS,
      [60_000],
    );
    claims = turn.claimed;
  });
}

async function counted(said: Said, run: () => Awaitable<unknown>): Promise<Said> {
  // The first runs are not counted, because they prepare the statements.
  for (let index = 0; index < 3; index += 1) await run();
  const counts: Said[] = [];
  for (let index = 0; index < TIMES; index += 1) {
    const before = { ...said };
    await run();
    counts.push({
      statements: said.statements - before.statements,
      roundTrips: said.roundTrips - before.roundTrips,
    });
  }
  return {
    statements: median(counts.map(({ statements }) => statements)),
    roundTrips: median(counts.map(({ roundTrips }) => roundTrips)),
  };
}

function rowOf(name: string, { statements, roundTrips }: Said): string {
  return `| ${name} | ${statements} | ${roundTrips} |`;
}
