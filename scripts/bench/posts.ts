/**
 * Measures the lowest possible cost of sending: signs and posts each delivery of a file as the sender does, and records
 * nothing. `bun scripts/bench/posts.ts FILE URL IN_FLIGHT`
 */
import { readFileSync } from "node:fs";
import { importSecret } from "../../src/client/signature.ts";
import type { Sent } from "./queued.ts";

const [file = "", url = "", inFlight = ""] = process.argv.slice(2);
const deliveries: Sent[] = readFileSync(file, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));
const keys = new Map<string, Promise<CryptoKey>>();
let next = 0;

function keyOf(secret: string): Promise<CryptoKey> {
  const key = keys.get(secret) ?? importSecret(secret);
  keys.set(secret, key);
  return key;
}

async function post({ topic, body, secret }: Sent): Promise<void> {
  const signature = Buffer.from(await crypto.subtle.sign("HMAC", await keyOf(secret), Buffer.from(body))).toString(
    "hex",
  );
  const headers = {
    "Content-Type": "application/json",
    "User-Agent": "sds",
    "X-Service-Topic": topic,
    "X-Service-Signature": `sha256=${signature}`,
  };
  const response = await fetch(url, {
    method: "POST",
    body,
    headers,
    redirect: "manual",
    proxy: false,
    keepalive: false,
    decompress: false,
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`${url} gave ${response.status}`);
}

async function postAll(): Promise<void> {
  for (let delivery = deliveries[next++]; delivery !== undefined; delivery = deliveries[next++]) await post(delivery);
}

await Promise.all(Array.from({ length: Number(inFlight) }, postAll));
