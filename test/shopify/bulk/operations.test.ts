import { expect, test } from "bun:test";
import { createLog } from "../../../src/lib/log.ts";
import type { GraphqlClient } from "../../../src/shopify/api/graphql-client.ts";
import { PlatformError } from "../../../src/shopify/api/platform-error.ts";
import { findBulkOperation, waitForBulkOperation } from "../../../src/shopify/bulk/operations.ts";

const SHOP = { id: 1, domain: "alpha.myshopify.com" };
const NODE = { id: "gid://shopify/BulkOperation/1", errorCode: null, fileSize: null, url: null };

/**
 * Makes a platform that answers with these states or errors, and then repeats the last one. The clock moves only during
 * a sleep.
 */
function watched(states: ({ status: string; rootObjectCount: string } | PlatformError)[]) {
  const logged: string[] = [];
  const log = createLog("warn", { write: (text) => logged.push(text) }, () => 0);
  const asked: string[] = [];
  const waits: number[] = [];
  let nowMs = 0;
  const client = {
    async query(_shop: unknown, { name }: { name: string }) {
      asked.push(name);
      if (name === "CancelBulkOperation") return { bulkOperationCancel: { bulkOperation: null } };
      const state = states.length > 1 ? states.shift() : states[0];
      if (state instanceof PlatformError) throw state;
      return { bulkOperation: state === undefined ? null : { ...NODE, ...state } };
    },
  } as unknown as GraphqlClient;
  const sleep = async (waitMs: number) => {
    waits.push(waitMs);
    nowMs += waitMs;
  };
  const services = { client, sleep, clock: () => nowMs, log };
  return {
    find: () => findBulkOperation(services, SHOP, NODE.id),
    wait: (onWait = (_: number) => {}) => waitForBulkOperation(services, SHOP, NODE.id, onWait),
    asked,
    waits,
    logged,
    now: () => nowMs,
  };
}

const running = (count: number) => ({ status: "RUNNING", rootObjectCount: String(count) });

test("a bulk operation is checked less and less often, every 30 seconds in the end", async () => {
  const { wait, waits } = watched([
    ...Array.from({ length: 7 }, (_, n) => running(n)),
    { ...running(9), status: "COMPLETED" },
  ]);
  const counts: number[] = [];
  await wait((count) => counts.push(count));
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  expect(counts).toEqual([0, 1, 2, 3, 4, 5, 6, 9]);
});

test("a bulk operation that stands still for two hours is canceled", async () => {
  const { wait, asked, now } = watched([running(1)]);
  await expect(wait()).rejects.toThrow("makes no progress");
  expect(asked.at(-1)).toBe("CancelBulkOperation");
  expect(now()).toBeGreaterThan(2 * 3_600_000);
});

test("a slow bulk operation is waited for", async () => {
  const states = Array.from({ length: 1_000 }, (_, n) => running(Math.floor(n / 100)));
  const { wait, now } = watched([...states, { ...running(10), status: "COMPLETED" }]);
  await wait();
  expect(now()).toBeGreaterThan(8 * 3_600_000);
});

const DOWN = new PlatformError("unavailable", "the platform answered HTTP 503", { status: 503 });
const DAY_MS = 24 * 3_600_000;

test("the wait for an operation goes on while the platform cannot be reached: this does not count as a standstill", async () => {
  const outage = Array.from({ length: 600 }, () => DOWN);
  const { wait, asked, logged, now } = watched([
    running(1),
    ...outage,
    running(1),
    ...outage,
    { ...running(1), status: "COMPLETED" },
  ]);
  await wait();
  expect(now()).toBeGreaterThan(9 * 3_600_000);
  expect(asked).not.toContain("CancelBulkOperation");
  expect(logged.filter((line) => line.includes("sds waits for it") && line.includes("HTTP 503"))).toHaveLength(2);
});

test("the wait for an operation ends at the operation's longest lifetime, or when the platform refuses", async () => {
  const { wait, now } = watched([DOWN]);
  await expect(wait()).rejects.toThrow("HTTP 503");
  expect(Math.floor(now() / DAY_MS)).toBe(10);
  const refused = watched([new PlatformError("refused", "no such field")]);
  await expect(refused.wait()).rejects.toThrow("no such field");
  expect(refused.waits).toEqual([]);
});

test("an operation that the platform no longer has gives no result", async () => {
  await expect(watched([]).wait()).rejects.toThrow("no longer has the result");
  expect(await watched([{ status: "EXPIRED", rootObjectCount: "1" }]).find()).toBeUndefined();
});
