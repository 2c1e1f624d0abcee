import { importSecret, signBody } from "../../src/client/signature.ts";

/** A node as its clients see it. */
export interface ClusterNode {
  /** The node's address, or its last address while it is down. */
  address(): string;
}

export function pick<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T;
}

/** Repeats an action until it is stopped. Failures are ignored, because the database's server may be down. */
export function startRepeating(run: () => Promise<unknown>, pauseMs: number): { end(): Promise<void> } {
  let isOver = false;
  async function repeat(): Promise<void> {
    for (; !isOver; await Bun.sleep(pauseMs)) await run().catch(() => undefined);
  }
  const repeating = repeat();
  return {
    end() {
      isOver = true;
      return repeating;
    },
  };
}

export interface ClusterShop {
  domain: string;
  key: string;
  intakeSecret: string;
}

/** How many deliveries of one shop may run at once: the default of SDS_DELIVERY_PER_SHOP. */
const PER_SHOP = 4;
const LONGEST_ANSWER_MS = 60;

/**
 * Receives the webhooks of all shops. Notes deliveries that run twice at once, and shops with too many deliveries at
 * once.
 */
export function startWatchingReceiver() {
  /** The ids of the deliveries about a record, by the `mark` in the record's data. */
  const ids = new Map<string, Set<string>>();
  const underWay = new Map<string, Set<string>>();
  const wrong: string[] = [];
  let received = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 255,
    async fetch(request) {
      const { id, shop, data } = (await request.json()) as { id: string; shop: string; data: { mark: string } };
      const running = underWay.get(shop) ?? new Set();
      underWay.set(shop, running);
      if (running.has(id)) wrong.push(`${id} was under way twice`);
      running.add(id);
      if (running.size > PER_SHOP) wrong.push(`${shop} had ${running.size} deliveries at once`);
      received += 1;
      await Bun.sleep(Math.random() * LONGEST_ANSWER_MS);
      running.delete(id);
      if (Math.random() < 0.05) return new Response(null, { status: 503 });
      ids.set(data.mark, (ids.get(data.mark) ?? new Set()).add(id));
      return new Response();
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/`,
    ids,
    wrong,
    received: () => received,
    stop: () => server.stop(true),
  };
}

/** Posts a record to one of the nodes. @returns whether the record was acknowledged */
export async function postReward(address: string, shop: ClusterShop, mark: string): Promise<boolean> {
  const customer = `gid://shopify/Customer/${(Number(mark) % 50) + 1}`;
  return (await postRecords(address, shop, { type: "reward", id: mark, mark, source: "loyalty", customer })) === 202;
}

/** Posts records to a node. @returns the status; undefined without an answer */
export async function postRecords(address: string, shop: ClusterShop, records: unknown): Promise<number | undefined> {
  const body = JSON.stringify(records);
  const signature = await signBody(await importSecret(shop.intakeSecret), Uint8Array.from(Buffer.from(body)));
  const headers = { "X-Service-Shop": shop.domain, "X-Service-Signature": signature };
  const signal = AbortSignal.timeout(15_000);
  try {
    return (await fetch(`${address}/intake`, { method: "POST", body, headers, signal })).status;
  } catch {
    return undefined;
  }
}

/** Reads a page. @returns how long the node took; undefined if it did not answer with 200 */
export async function timePage(address: string, { key }: ClusterShop): Promise<number | undefined> {
  const began = performance.now();
  return (await statusOfPage(address, key)) === 200 ? performance.now() - began : undefined;
}

/** Reads a page. @returns the status; undefined without an answer */
export async function statusOfPage(address: string, key: string): Promise<number | undefined> {
  try {
    const answer = await fetch(`${address}/api/v1/customers?limit=5`, {
      headers: { Authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(15_000),
    });
    await answer.text();
    return answer.status;
  } catch {
    return undefined;
  }
}
