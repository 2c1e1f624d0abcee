import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { customer } from "../support/records.ts";
import { signed } from "../support/shop-sending.ts";

/** How long an operation waits for another process's lock. */
const WAIT_MS = 2_000;

async function servedShop() {
  const program = await Program.withShop();
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "A"]);
  const { secret } = await program.json<{ secret: string }>(["intake", "secret"]);
  const { url } = await program.serve();
  const post = async (n: number) => {
    const { status } = await fetch(`${url}/intake`, signed(JSON.stringify(customer(n)), secret));
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

test("while another process holds the write lock, reads do not wait, and each write waits for the same two seconds", async () => {
  const { post, read, other } = await servedShop();
  // A pause of the machine can hide any of these three results. So the test repeats until it has seen all three.
  const shown = { readFirst: false, together: false, atOnce: false };
  await eventually(async () => {
    other.run("BEGIN IMMEDIATE");
    let haveEnded = false;
    const posts = timed(Promise.all([1, 2, 3, 4, 5].map(post))).finally(() => {
      haveEnded = true;
    });
    expect(await read()).toEqual([200, 200]);
    shown.readFirst ||= !haveEnded;
    const { result, tookMs } = await posts;
    expect(result).toEqual([503, 503, 503, 503, 503]);
    expect(tookMs).toBeGreaterThan(WAIT_MS / 2);
    shown.together ||= tookMs < 3 * WAIT_MS;
    // The lock has been held for longer than the timeout by now. So later writes fail without waiting.
    const late = await timed(post(6));
    expect(late.result).toBe(503);
    shown.atOnce ||= late.tookMs < WAIT_MS;
    other.run("ROLLBACK");
    return !Object.values(shown).includes(false);
  });
  await eventually(async () => (await post(7)) === 202);
});

test("a write waits for a lock that another process holds for a moment", async () => {
  const { post, read, other } = await servedShop();
  await eventually(async () => {
    other.run("BEGIN IMMEDIATE");
    const posted = post(1);
    // In the meantime, the program answers later requests.
    for (let n = 0; n < 10; n += 1) await read();
    other.run("ROLLBACK");
    return (await posted) === 202;
  });
});

/** @returns the result of the work, and its duration in milliseconds */
async function timed<T>(work: Promise<T>): Promise<{ result: T; tookMs: number }> {
  const began = performance.now();
  return { result: await work, tookMs: performance.now() - began };
}
