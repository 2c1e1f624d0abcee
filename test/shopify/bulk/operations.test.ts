import { expect, test } from "bun:test";
import type { GraphqlClient } from "../../../src/shopify/api/graphql-client.ts";
import { createBulkOperations } from "../../../src/shopify/bulk/operations.ts";

const SHOP = { id: 1, domain: "alpha.myshopify.com" };
const NODE = { id: "gid://shopify/BulkOperation/1", errorCode: null, fileSize: null, url: null };

/** Operations whose looks give these states, the last one for ever. The clock moves only while they sleep. */
function watched(states: { status: string; rootObjectCount: string }[]) {
  const asked: string[] = [];
  const waits: number[] = [];
  let nowMs = 0;
  const client = {
    async query(_shop: unknown, { name }: { name: string }) {
      asked.push(name);
      if (name === "CancelBulkOperation") return { bulkOperationCancel: { bulkOperation: null } };
      const state = states.length > 1 ? states.shift() : states[0];
      return { bulkOperation: state === undefined ? null : { ...NODE, ...state } };
    },
  } as unknown as GraphqlClient;
  const sleep = async (waitMs: number) => {
    waits.push(waitMs);
    nowMs += waitMs;
  };
  return { operations: createBulkOperations({ client, sleep, clock: () => nowMs }), asked, waits, now: () => nowMs };
}

const running = (count: number) => ({ status: "RUNNING", rootObjectCount: String(count) });

test("looks at a bulk operation come less and less often, every 30 seconds at last", async () => {
  const { operations, waits } = watched([
    ...Array.from({ length: 7 }, (_, n) => running(n)),
    { ...running(9), status: "COMPLETED" },
  ]);
  const counts: number[] = [];
  await operations.wait(SHOP, NODE.id, (count) => counts.push(count));
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  expect(counts).toEqual([0, 1, 2, 3, 4, 5, 6, 9]);
});

test("a bulk operation that does not go on for two hours is canceled", async () => {
  const { operations, asked, now } = watched([running(1)]);
  await expect(operations.wait(SHOP, NODE.id, () => {})).rejects.toThrow("does not go on");
  expect(asked.at(-1)).toBe("CancelBulkOperation");
  expect(now()).toBeGreaterThan(2 * 3_600_000);
});

test("a bulk operation that goes on slowly is waited for", async () => {
  const states = Array.from({ length: 1_000 }, (_, n) => running(Math.floor(n / 100)));
  const { operations, now } = watched([...states, { ...running(10), status: "COMPLETED" }]);
  await operations.wait(SHOP, NODE.id, () => {});
  expect(now()).toBeGreaterThan(8 * 3_600_000);
});

test("an operation that the platform has no more is no result", async () => {
  await expect(watched([]).operations.wait(SHOP, NODE.id, () => {})).rejects.toThrow("no more");
  const expired = watched([{ status: "EXPIRED", rootObjectCount: "1" }]).operations;
  expect(await expired.find(SHOP, NODE.id)).toBeUndefined();
});
