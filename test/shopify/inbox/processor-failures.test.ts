import { describe, expect, test } from "bun:test";
import { soleMember } from "../../../src/cluster/membership.ts";
import { PlatformError } from "../../../src/shopify/api/platform-error.ts";
import { StoreError } from "../../../src/store/port/store-error.ts";
import { eventually } from "../../support/eventually.ts";
import {
  bySubject,
  DOWN,
  LOCKED,
  MINUTE,
  numbered,
  processing,
  processingOf,
  REFUSED,
  SECOND,
} from "./slow-processing.ts";

describe("a platform that fails", () => {
  async function failing() {
    const all = await processingOf(numbered("s", 30));
    const running = all.newCalls();
    for (const call of running) call.fail(DOWN);
    await all.settle();
    return all;
  }

  test("is not queried for 5 seconds, and then for one subject", async () => {
    const all = await processingOf(["s1"]);
    all.newCalls()[0]?.fail(DOWN);
    await all.settle();
    await all.receive("a", numbered("t", 9));
    all.clock.ms += 5 * SECOND - 1;
    expect(await all.nextCalls()).toEqual([]);
    all.clock.ms += 1;
    expect(await all.nextCalls()).toHaveLength(1);
  });

  test.each([
    ["a minute", DOWN, [5, 10, 20, 40, 60, 60]],
    ["15 minutes while it refuses the connection", LOCKED, [5, 10, 20, 40, 80, 160, 320, 640, 900, 900]],
  ])("rests twice as long after each failure, up to %s", async (_title, failure, expected) => {
    const { receive, wake, settle, newCalls, callCount, clock } = await processingOf(["first"]);
    const rests: number[] = [];
    for (let failures = 1; failures <= expected.length; failures += 1) {
      const [single, ...more] = newCalls();
      expect([single === undefined, more]).toEqual([false, []]);
      single?.fail(failure);
      await settle();
      await receive("a", numbered(`after${failures}-`, 2));
      const began = clock.ms;
      for (await wake(); callCount() === 0 && clock.ms < began + 20 * MINUTE; await wake()) clock.ms += SECOND;
      rests.push((clock.ms - began) / SECOND);
    }
    expect(rests).toEqual(expected);
  });

  test("is queried for several subjects again as soon as it answers", async () => {
    const { clock, nextCalls, settledCalls } = await failing();
    clock.ms += MINUTE;
    const [single, ...more] = await nextCalls();
    expect(more).toEqual([]);
    await single?.succeed();
    expect(await settledCalls()).toHaveLength(29);
  });

  test("delays neither another shop nor subjects that do not need the platform", async () => {
    const { receive, settle, nextCalls } = await failing();
    await receive("a", ["quick"], false);
    await receive("b", ["s1"]);
    const [other, quick, ...more] = await nextCalls();
    expect([other, quick].map((call) => `${call?.domain} ${call?.subject}`)).toEqual(["b s1", "a quick"]);
    await quick?.succeed();
    await settle();
    // The subject `quick` does not need the platform, so the shop still waits for the platform.
    await receive("a", ["s31"]);
    expect([more, await nextCalls()]).toEqual([[], []]);
  });

  test("may refuse one subject without a rest for the others", async () => {
    const { newCalls, settledCalls } = await processingOf(numbered("s", 33));
    newCalls()[0]?.fail(new PlatformError("refused", "no such field"));
    expect(bySubject(await settledCalls())).toEqual(["a s33"]);
  });
});

describe("a platform webhook that fails", () => {
  test("is attempted again after 5 seconds, then after longer waits, and stays as failed after 11 attempts", async () => {
    const { entries, receive, settle, waits, clock, logged, nextCalls } = await processing();
    await receive("a", ["s"]);
    const planned: (number | null)[] = [];
    for (let attempt = 1; attempt <= 11; attempt += 1) {
      const [call, ...more] = await nextCalls();
      expect(more).toEqual([]);
      call?.fail(REFUSED);
      await settle();
      const [wait = null] = await waits("a");
      planned.push(wait);
      clock.ms += (wait ?? 0) - 1;
      expect(await nextCalls()).toEqual([]);
      clock.ms += 1;
    }
    const minutes = [1, 5, 15, 30, 60, 120, 240, 480].map((each) => each * MINUTE);
    expect(planned).toEqual([5 * SECOND, 15 * SECOND, ...minutes, null]);
    expect(await entries("a")).toMatchObject([{ status: "failed", attempts: 11, error: "the record is refused" }]);
    const isLast = planned.map((wait) => wait === null);
    expect(logged.map((line) => line.includes("it stays in the inbox as failed"))).toEqual(isLast);
    clock.ms += 24 * 60 * MINUTE;
    expect(await nextCalls()).toEqual([]);
  });

  test("is never given up while the platform refuses the connection, and waits an hour at most", async () => {
    const { entries, receive, settle, waits, clock, nextCalls } = await processing();
    await receive("a", ["s"]);
    for (let attempt = 1; attempt <= 15; attempt += 1) {
      for (const call of await nextCalls()) call.fail(LOCKED);
      await settle();
      const [wait = null] = await waits("a");
      expect(wait).toBeLessThanOrEqual(60 * MINUTE);
      clock.ms += Math.max(wait ?? 0, 15 * MINUTE);
    }
    expect(await entries("a")).toMatchObject([{ status: "waiting", attempts: 15 }]);
  });

  test("waits no longer than the newest webhook about its subject must wait", async () => {
    const { receive, settle, waits, clock, nextCalls } = await processing();
    const failAll = async () => {
      for (const call of await nextCalls()) call.fail(REFUSED);
      await settle();
    };
    await receive("a", ["s"]);
    for (const ms of [0, 5 * SECOND, 15 * SECOND]) {
      clock.ms += ms;
      await failAll();
    }
    expect(await waits("a")).toEqual([MINUTE]);
    clock.ms += MINUTE;
    await receive("a", ["s"]);
    await failAll();
    expect(await waits("a")).toEqual([5 * SECOND, 5 * SECOND]);
  });

  test("during a stop is not counted as an attempt, and no further attempt starts", async () => {
    const { entries, processor, newCalls } = await processingOf(numbered("s", 9));
    const running = newCalls();
    const stopping = processor.stop();
    for (const call of running) call.fail(DOWN);
    await stopping;
    expect(newCalls()).toEqual([]);
    const states = (await entries("a")).map(({ status, attempts }) => `${status} ${attempts}`);
    expect(states).toEqual(Array<string>(9).fill("waiting 0"));
  });
});

describe("a database that fails", () => {
  test("when due webhooks are read is logged, and they are processed after a pause", async () => {
    const { store, receive, wake, endPause, logged, nextCalls, settledCalls } = await processing();
    await receive("a", ["s"]);
    const { dueQueues } = store.inbox;
    store.inbox.dueQueues = () => Promise.reject(new Error("disk I/O error"));
    await wake();
    store.inbox.dueQueues = dueQueues;
    expect(await nextCalls()).toEqual([]);
    expect(logged.join("")).toContain("disk I/O error");
    endPause();
    expect(await settledCalls()).toHaveLength(1);
  });

  test("after a webhook failed is logged, and the webhook is processed after a pause", async () => {
    const { store, settle, newCalls, endPause, logged, settledCalls } = await processingOf(["s"]);
    const { postpone } = store.inbox;
    store.inbox.postpone = () => Promise.reject(new Error("database is locked"));
    newCalls()[0]?.fail(REFUSED);
    await settle();
    store.inbox.postpone = postpone;
    expect(newCalls()).toEqual([]);
    expect(logged.join("")).toContain("database is locked");
    endPause();
    expect(await settledCalls()).toHaveLength(1);
  });
});

test("webhooks received or postponed while the clock was ahead are processed after the clock was set back", async () => {
  const { processor, clock, logged, receive, nextCalls } = await processing();
  const hour = 60 * MINUTE;
  clock.step(24 * hour);
  await receive("a", ["postponed"]);
  (await nextCalls())[0]?.fail(new Error("no"));
  await eventually(() => !processor.working);
  await receive("a", ["received"]);
  clock.step(-24 * hour);
  expect(bySubject(await nextCalls()).toSorted()).toEqual(["a postponed", "a received"]);
  expect(logged.join("")).toContain("planned at that time are due now");
});

test("a start processes webhooks that a clock that was ahead planned too late", async () => {
  const { clock, receive, nextCalls } = await processing();
  clock.step(60 * MINUTE);
  await receive("a", ["received"]);
  clock.step(-60 * MINUTE);
  expect(await nextCalls()).toHaveLength(1);
});

test("a webhook that fails because another node has taken over the shop stays unchanged in the inbox", async () => {
  const membership = { ...soleMember(), mayBegin: () => false };
  const { receive, settle, waits, logged, nextCalls } = await processing(membership);
  await receive("a", ["s"]);
  const [before] = await waits("a");
  (await nextCalls())[0]?.fail(
    new StoreError("conflict", new Error("another node has taken over the work for the shop")),
  );
  await settle();
  expect([await waits("a"), logged]).toEqual([[before ?? null], []]);
});
