import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { afterTest } from "../support/cleanup.ts";
import { Program } from "../support/program.ts";
import { customer } from "../support/records.ts";

const ALPHA = "alpha.myshopify.com";
/** How long an operation waits for another process's lock. */
const WAIT_MS = 2_000;
/** What a busy machine adds. */
const SLACK_MS = 1_500;

async function servedShop() {
  const program = new Program();
  await program.json(["shop", "add", ALPHA]);
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "A"]);
  const { secret } = await program.json<{ secret: string }>(["intake", "secret"]);
  const { url } = await program.serve();
  const post = async (n: number) => {
    const body = JSON.stringify(customer(n));
    const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
    const headers = { "X-Service-Shop": ALPHA, "X-Service-Signature": signature };
    const { status } = await fetch(`${url}/intake`, { method: "POST", body, headers });
    return status;
  };
  const read = async () => {
    const headers = { Authorization: `Bearer ${key}` };
    return [await fetch(`${url}/healthz`), await fetch(`${url}/api/v1/customers`, { headers })].map(
      ({ status }) => status,
    );
  };
  const other = new Database(join(program.data, "sds.db"));
  afterTest(() => other.close());
  other.run("PRAGMA busy_timeout = 5000");
  return { post, read, other };
}

/** @returns what work resolves to, and how many milliseconds it took */
async function timed<T>(work: Promise<T>): Promise<{ result: T; tookMs: number }> {
  const began = performance.now();
  return { result: await work, tookMs: performance.now() - began };
}

test("while another process holds the write lock, reads do not wait, and each write waits for the same two seconds", async () => {
  const { post, read, other } = await servedShop();
  other.run("BEGIN IMMEDIATE");
  let isOver = false;
  const posts = timed(Promise.all([1, 2, 3, 4, 5].map(post))).finally(() => {
    isOver = true;
  });
  const delays: number[] = [];
  while (!isOver) {
    const { result, tookMs } = await timed(read());
    expect(result).toEqual([200, 200]);
    delays.push(tookMs);
  }
  expect((await posts).result).toEqual([503, 503, 503, 503, 503]);
  expect((await posts).tookMs).toBeWithin(WAIT_MS / 2, WAIT_MS + SLACK_MS);
  expect(Math.max(...delays)).toBeLessThan(500);

  // The lock was held for longer than anybody waits, so nobody waits for it any more.
  const late = await timed(post(6));
  expect(late.result).toBe(503);
  expect(late.tookMs).toBeLessThan(SLACK_MS);

  const waiting = post(7);
  other.run("ROLLBACK");
  await waiting;
  expect(await post(8)).toBe(202);
});

test("a write waits for a lock that another process holds for a moment", async () => {
  const { post, other } = await servedShop();
  other.run("BEGIN IMMEDIATE");
  const posted = timed(post(1));
  await Bun.sleep(300);
  other.run("ROLLBACK");
  const { result, tookMs } = await posted;
  expect(result).toBe(202);
  expect(tookMs).toBeGreaterThan(290);
});
