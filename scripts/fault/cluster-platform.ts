import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SQL } from "bun";
import { subscriptionId } from "../../src/domain/ids.ts";
import { DOMAIN, StandIn } from "../bench/stand-in.ts";
import { type ClusterNode, pick } from "./cluster-traffic.ts";

const CONTRACTS = 12;
const PAUSE_MS = 150;
const DRAIN_MS = 120_000;

/** A stand-in of the platform. Its webhooks go to any node, again and again until one takes them. */
export async function startPlatform(folder: string, nodes: readonly ClusterNode[]) {
  const secretFile = join(folder, "secret");
  writeFileSync(secretFile, "the-app-client-secret");
  const standIn = await StandIn.start(
    secretFile,
    { maximumAvailable: 10_000, restoreRate: 10_000 },
    { contracts: CONTRACTS, renewals: 1 },
  );
  const underWay = new Set<Promise<void>>();
  const forwarder = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const body = await request.bytes();
      const sent = forward(request.headers, body).finally(() => underWay.delete(sent));
      underWay.add(sent);
      return new Response();
    },
  });
  const wanted = new Map<string, { status: string; nextBillingDate: string }>();
  let isOver = false;
  let changes = 0;
  let changing: Promise<void> | undefined;

  async function forward(headers: Headers, body: Uint8Array<ArrayBuffer>): Promise<void> {
    for (;;) {
      const answer = await fetch(`${pick(nodes).address()}/platform/webhooks`, {
        method: "POST",
        headers: [...headers].filter(([name]) => name.startsWith("x-") || name === "content-type") as [
          string,
          string,
        ][],
        body,
        signal: AbortSignal.timeout(5_000),
      }).catch(() => undefined);
      if (answer?.status === 200) return;
      await Bun.sleep(200);
    }
  }

  async function change(): Promise<void> {
    const contracts = await standIn.ids("contract");
    while (!isOver) {
      const id = pick(contracts);
      const now = wanted.get(id) ?? { status: "ACTIVE", nextBillingDate: "" };
      if (Math.random() < 0.5) {
        const isActive = now.status === "ACTIVE";
        await standIn.tell(isActive ? "pause" : "activate", { id });
        now.status = isActive ? "PAUSED" : "ACTIVE";
      } else {
        now.nextBillingDate = new Date(
          Date.UTC(2027, 0, 1) + Math.floor(Math.random() * 300) * 86_400_000,
        ).toISOString();
        await standIn.tell("updateContract", { id, nextBillingDate: now.nextBillingDate });
      }
      wanted.set(id, now);
      changes += 1;
      await Bun.sleep(PAUSE_MS);
    }
  }

  return {
    domain: DOMAIN,
    env: {
      SDS_PLATFORM_URL: standIn.url,
      SDS_PLATFORM_CLIENT_ID: "client",
      SDS_PLATFORM_SECRET_FILE: secretFile,
    },
    /** The shop is connected and loaded. */
    async begin(): Promise<void> {
      await standIn.tell("webhooksTo", { url: `http://127.0.0.1:${forwarder.port}/` });
      changing = change();
    },
    /** Waits until all is processed. @returns what the mirror has that the platform has not */
    async end(sql: SQL): Promise<string[]> {
      isOver = true;
      await changing;
      await Promise.all(underWay);
      const began = performance.now();
      const inbox = () => sql.unsafe("SELECT number, status, attempts, error FROM inbox");
      while ((await inbox()).length > 0 && performance.now() - began < DRAIN_MS) await Bun.sleep(500);
      const left = await inbox();
      const problems = left.length > 0 ? [`${left.length} stay in the inbox: ${JSON.stringify(left[0])}`] : [];
      for (const [gid, { status, nextBillingDate }] of wanted) {
        const [row] = await sql.unsafe(`SELECT json FROM subscriptions WHERE id = '${subscriptionId(DOMAIN, gid)}'`);
        const found = JSON.parse(row?.json ?? "{}");
        const isRight =
          found.status === status && (nextBillingDate === "" || found.nextBillingDate === nextBillingDate);
        if (!isRight)
          problems.push(`${gid} is ${found.status} ${found.nextBillingDate}, not ${status} ${nextBillingDate}`);
      }
      return problems;
    },
    async stop(): Promise<void> {
      forwarder.stop(true);
      await standIn[Symbol.asyncDispose]();
    },
    count: () => changes,
  };
}
