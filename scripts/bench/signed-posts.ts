import { createHmac } from "node:crypto";
import { subscriptionRecords } from "./records.ts";
import type { Server } from "./servers.ts";

/** A signed record, as the billing system posts it. */
export interface SignedPost {
  body: string;
  headers: Record<string, string>;
}

/** The contracts of a filled shop have lower ids. */
const FIRST_NEW_CONTRACT = 90_000_000_000;

/** Makes posts with one new contract each. Each post causes one event. */
export function signedPosts(domain: string, secret: string, count: number): SignedPost[] {
  return Array.from(subscriptionRecords(count, "random"), (record, index) => {
    const shopifyId = `gid://shopify/SubscriptionContract/${FIRST_NEW_CONTRACT + index}`;
    const body = JSON.stringify({ ...record, shopifyId });
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    return { body, headers: { "X-Service-Shop": domain, "X-Service-Signature": `sha256=${signature}` } };
  });
}

/** @throws if the post is not accepted */
export async function post({ url }: Pick<Server, "url">, { body, headers }: SignedPost): Promise<void> {
  const answer = await fetch(`${url}/intake`, { method: "POST", body, headers });
  const text = await answer.text();
  if (answer.status !== 202) throw new Error(`/intake gave ${answer.status}: ${text}`);
}

/** Sends posts over some connections, to the servers in turn. */
export async function postAll(
  servers: readonly Server[],
  posts: readonly SignedPost[],
  connections: number,
): Promise<{ count: number; seconds: number }> {
  const left = posts.values();
  const start = performance.now();
  const connection = async (_: unknown, index: number) => {
    const server = servers[index % servers.length];
    if (server === undefined) throw new Error("there is no server");
    for (const each of left) await post(server, each);
  };
  await Promise.all(Array.from({ length: connections }, connection));
  return { count: posts.length, seconds: (performance.now() - start) / 1_000 };
}
