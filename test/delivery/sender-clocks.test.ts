import { describe, expect, test } from "bun:test";
import { START } from "../support/app.ts";
import { contracts, FAILED, MINUTE, sendingSlowly } from "./slow-sending.ts";

test("a clock that is set forward makes no second attempt of a delivery at the same time", async () => {
  const { wake, newAttempts, log, clock, begin, end } = await sendingSlowly();
  const shop = await begin("a", 2);
  const [first] = newAttempts();
  await end([first]);
  const [second] = newAttempts();
  clock.ms += 60 * MINUTE;
  await wake();
  expect(newAttempts()).toEqual([]);
  await end([second]);
  // The result is accepted, because the attempt got a new lease when the clock jumped.
  expect(await log(shop)).toMatchObject([
    { status: "delivered", attempts: 1 },
    { status: "delivered", attempts: 1 },
  ]);
  expect(newAttempts()).toEqual([]);
});

describe("a clock that was ahead", () => {
  test("before the start delays no first attempt, even if it was ahead by only a minute", async () => {
    const { addShop, wake, newAttempts, clock, logged } = await sendingSlowly();
    clock.ms += 60 * MINUTE;
    await addShop("a", 1);
    clock.ms -= 59 * MINUTE;
    await addShop("b", 1);
    clock.ms -= MINUTE;
    await wake();
    expect(contracts(newAttempts())).toEqual(["1 1", "2 1"]);
    expect(logged.filter((line) => line.includes("the clock was ahead"))).toHaveLength(1);
  });

  test("and is set back by a minute delays no first attempt, and a retry keeps its planned time", async () => {
    const { addShop, wake, settle, newAttempts, clock, endNew, begin } = await sendingSlowly();
    clock.ms += MINUTE;
    await begin("a", 1);
    await endNew(FAILED);
    await addShop("b", 1);
    clock.ms -= MINUTE;
    await wake();
    await settle();
    expect(contracts(newAttempts())).toEqual(["2 1"]);
  });

  test.each([
    [3_000, []],
    [5_000, ["1 1"]],
  ])("by %i ms: a retry is due at once only if the clocks of nodes cannot differ by as much", async (aheadMs, due) => {
    const { wake, settle, newAttempts, clock, endNew, begin } = await sendingSlowly({ waitsMs: [2 * MINUTE] });
    clock.ms += aheadMs;
    await begin("a", 1);
    await endNew(FAILED);
    clock.ms -= aheadMs;
    await wake();
    await settle();
    expect(contracts(newAttempts())).toEqual(due);
  });

  test("and is set back delays no retry", async () => {
    const { wake, settle, newAttempts, clock, endNew, begin } = await sendingSlowly();
    clock.ms += 60 * MINUTE;
    await begin("a", 1);
    await endNew(FAILED);
    clock.ms -= 60 * MINUTE;
    await wake();
    await settle();
    expect(contracts(newAttempts())).toEqual(["1 1"]);
  });
});

describe("a clock that is set back by a day delays no retry", () => {
  test.each([
    ["of an attempt that is under way", false],
    ["of an attempt whose result is not recorded yet", true],
  ])("%s", async (_name, isBroken) => {
    const { wake, settle, breakDatabase, endPause, newAttempts, log, clock, steady, begin, end } =
      await sendingSlowly();
    const shop = await begin("a", 1);
    const attempts = newAttempts();
    clock.ms += 5_000;
    steady.ms += 5_000;
    const mend = isBroken ? breakDatabase() : () => undefined;
    if (isBroken) await end(attempts, FAILED);
    clock.step(-24 * 60 * MINUTE);
    mend();
    endPause();
    await end(attempts, FAILED);
    await settle();
    expect(await log(shop)).toMatchObject([{ status: "retrying", nextAttemptAt: clock.ms - 5_000 + 2 * MINUTE }]);
    clock.ms += 2 * MINUTE;
    await wake();
    expect(newAttempts()).toHaveLength(1);
  });
});

describe("a process that was paused", () => {
  test("does not attempt deliveries that it claimed before, because their leases may end during the attempt", async () => {
    const { addShop, deliveries, wake, newAttempts, clock, steady, log } = await sendingSlowly({ isShared: true });
    const shop = await addShop("a", 1);
    const { recordAndClaim } = deliveries;
    deliveries.recordAndClaim = async (...args) => {
      const answer = await recordAndClaim(...args);
      clock.ms += 20_000;
      steady.ms += 20_000;
      return answer;
    };
    await wake();
    expect(newAttempts()).toEqual([]);
    deliveries.recordAndClaim = recordAndClaim;
    await wake();
    expect(newAttempts()).toHaveLength(1);
    expect(await log(shop)).toMatchObject([{ status: "pending", attempts: 0 }]);
  });

  test("finishes an attempt under way, under the lease that it claimed late", async () => {
    const { deliveries, wake, newAttempts, clock, steady, log, endNew, begin, end } = await sendingSlowly({
      isShared: true,
    });
    const shop = await begin("a", 2);
    await endNew();
    const [running] = newAttempts();
    // The lease expires.
    clock.ms += 60_000;
    const { recordAndClaim } = deliveries;
    deliveries.recordAndClaim = async (...args) => {
      const answer = await recordAndClaim(...args);
      steady.ms += 3_000;
      return answer;
    };
    await wake();
    deliveries.recordAndClaim = recordAndClaim;
    expect(newAttempts()).toEqual([]);
    await end([running]);
    expect(await log(shop)).toMatchObject([
      { status: "delivered", attempts: 1 },
      { status: "delivered", attempts: 1 },
    ]);
  });

  test.each([
    ["a clock that is ahead by as much as nodes may differ", 4_000, 0],
    ["a clock that was ahead by more", 20_000, 1],
  ])("attempts at its start what another node claimed with %s: %p ms, %p deliveries", async (_name, aheadMs, count) => {
    // All waits are shorter than a lease, so the limit for planned times depends only on the length of a lease.
    const { addShop, deliveries, wake, newAttempts } = await sendingSlowly({ waitsMs: [1_000] });
    const shop = await addShop("a", 1);
    const leaseEndsAt = START + aheadMs + 15_000;
    await deliveries.recordAndClaim([], [{ shopId: shop.id, kind: "webhook", count: 1 }], START, leaseEndsAt, []);
    await wake();
    expect(newAttempts()).toHaveLength(count);
  });
});
