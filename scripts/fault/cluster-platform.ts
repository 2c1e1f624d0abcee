import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SQL } from "bun";
import { subscriptionId } from "../../src/domain/ids.ts";
import { DOMAIN, StandIn } from "../bench/stand-in.ts";
import { type ClusterNode, pick } from "./cluster-traffic.ts";

const CONTRACTS = 12;
const PAUSE_MS = 150;
const DRAIN_MS = 120_000;
const DAY_MS = 86_400_000;

/** Starts a stand-in of the platform. It posts each webhook to any node, again and again until a node accepts it. */
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
  const changes = startChanges(standIn);

  async function forward(headers: Headers, body: Uint8Array<ArrayBuffer>): Promise<void> {
    const isKept = ([name]: [string, string]) => name.startsWith("x-") || name === "content-type";
    const request = { method: "POST", headers: [...headers].filter(isKept), body };
    for (;;) {
      const url = `${pick(nodes).address()}/platform/webhooks`;
      const answer = await fetch(url, { ...request, signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
      if (answer?.status === 200) return;
      await Bun.sleep(200);
    }
  }

  return {
    domain: DOMAIN,
    env: {
      SDS_PLATFORM_URL: standIn.url,
      SDS_PLATFORM_CLIENT_ID: "client",
      SDS_PLATFORM_SECRET_FILE: secretFile,
    },
    /** Call when the shop is connected and loaded. */
    async begin(): Promise<void> {
      await standIn.tell("webhooksTo", { url: `http://127.0.0.1:${forwarder.port}/` });
      changes.begin();
    },
    /** Waits until the inbox is empty. @returns differences between mirror and platform */
    async end(sql: SQL): Promise<string[]> {
      await changes.end();
      await Promise.all(underWay);
      const start = performance.now();
      const inbox = () => sql.unsafe("SELECT number, status, attempts, error FROM inbox");
      while ((await inbox()).length > 0 && performance.now() - start < DRAIN_MS) await Bun.sleep(500);
      const left = await inbox();
      const problems = left.length > 0 ? [`${left.length} stay in the inbox: ${JSON.stringify(left[0])}`] : [];
      return [...problems, ...(await differences(sql, changes.contracts))];
    },
    async stop(): Promise<void> {
      forwarder.stop(true);
      await standIn[Symbol.asyncDispose]();
    },
    count: changes.count,
  };
}

/** A contract's expected state at the platform after the last changes. */
interface ChangedContract {
  status: "ACTIVE" | "PAUSED";
  /** Empty until a change sets it. */
  nextBillingDate: string;
}

/** Changes contracts at the platform, one after another. */
function startChanges(standIn: StandIn) {
  const contracts = new Map<string, ChangedContract>();
  let isOver = false;
  let count = 0;
  let changing: Promise<void> | undefined;

  async function changeOne(id: string): Promise<void> {
    const contract = contracts.get(id) ?? { status: "ACTIVE", nextBillingDate: "" };
    if (Math.random() < 0.5) {
      const isActive = contract.status === "ACTIVE";
      await standIn.tell(isActive ? "pause" : "activate", { id });
      contract.status = isActive ? "PAUSED" : "ACTIVE";
    } else {
      const at = Date.UTC(2027, 0, 1) + Math.floor(Math.random() * 300) * DAY_MS;
      contract.nextBillingDate = new Date(at).toISOString();
      await standIn.tell("updateContract", { id, nextBillingDate: contract.nextBillingDate });
    }
    contracts.set(id, contract);
  }

  async function changeMany(): Promise<void> {
    const ids = await standIn.ids("contract");
    for (; !isOver; count += 1) {
      await changeOne(pick(ids));
      await Bun.sleep(PAUSE_MS);
    }
  }

  return {
    contracts,
    count: () => count,
    begin() {
      changing = changeMany();
    },
    async end() {
      isOver = true;
      await changing;
    },
  };
}

async function differences(sql: SQL, contracts: ReadonlyMap<string, ChangedContract>): Promise<string[]> {
  const problems: string[] = [];
  for (const [gid, { status, nextBillingDate }] of contracts) {
    const [row] = await sql.unsafe(`SELECT json FROM subscriptions WHERE id = '${subscriptionId(DOMAIN, gid)}'`);
    const found = JSON.parse(row?.json ?? "{}");
    const isRight = found.status === status && (nextBillingDate === "" || found.nextBillingDate === nextBillingDate);
    if (!isRight) problems.push(`${gid} is ${found.status} ${found.nextBillingDate}, not ${status} ${nextBillingDate}`);
  }
  return problems;
}
