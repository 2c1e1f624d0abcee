import { expect, test } from "bun:test";
import { createRateLimits } from "../../../src/shopify/api/rate-limits.ts";

test("the fewest points are those of the shop that has spent most", async () => {
  const { reserve, fewestPoints } = createRateLimits(
    () => 0,
    async () => undefined,
  );
  expect(fewestPoints()).toBeUndefined();
  for (const [shopId, currentlyAvailable] of [
    [1, 900],
    [2, 40],
    [3, 500],
  ] as const) {
    const release = await reserve(shopId, { operationName: "shop", size: 1 }, "attempt");
    const throttleStatus = { maximumAvailable: 1_000, currentlyAvailable, restoreRate: 50 };
    release({ requestedQueryCost: 1, throttleStatus });
  }
  expect(fewestPoints()).toBe(40);
});
