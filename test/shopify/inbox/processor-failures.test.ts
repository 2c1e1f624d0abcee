import { describe, expect, test } from "bun:test";
import { soleMember } from "../../../src/cluster/membership.ts";
import { SdsError } from "../../../src/domain/error.ts";
import { PlatformError } from "../../../src/shopify/api/platform-error.ts";
import { StoreError } from "../../../src/store/port/store-error.ts";
import { eventually } from "../../support/eventually.ts";
import { bySubject, DOWN, MINUTE, numbered, processing, SECOND } from "./slow-processing.ts";

describe("a platform that fails", () => {
  async function failing() {
    const all = await processing();
    const shop = await all.addShop("a");
    await all.receive(shop, numbered("s", 30));
    await all.wake();
    const running = all.newCalls();
    for (const call of running) call.fail(DOWN);
    await all.settle();
    return { ...all, shop };
  }

  test("is not queried for 5 seconds, and then for one subject", async () => {
    const all = await processing();
    const shop = await all.addShop("a");
    await all.receive(shop, ["s1"]);
    await all.wake();
    all.newCalls()[0]?.fail(DOWN);
    await all.settle();
    await all.receive(shop, numbered("t", 9));
    all.clock.ms += 5 * SECOND - 1;
    await all.wake();
    expect(all.newCalls()).toEqual([]);
    all.clock.ms += 1;
    await all.wake();
    expect(all.newCalls()).toHaveLength(1);
  });

  test("rests twice as long after each failure, up to a minute", async () => {
    const { addShop, receive, wake, settle, newCalls, callCount, clock } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["first"]);
    await wake();
    const rests: number[] = [];
    for (let failures = 1; failures <= 6; failures += 1) {
      const [single, ...more] = newCalls();
      expect([single === undefined, more]).toEqual([false, []]);
      single?.fail(DOWN);
      await settle();
      await receive(shop, numbered(`after${failures}-`, 2));
      const began = clock.ms;
      for (await wake(); callCount() === 0 && clock.ms < began + 2 * MINUTE; await wake()) clock.ms += SECOND;
      rests.push((clock.ms - began) / SECOND);
    }
    expect(rests).toEqual([5, 10, 20, 40, 60, 60]);
  });

  test("is queried for several subjects again as soon as it answers", async () => {
    const { clock, wake, settle, newCalls } = await failing();
    clock.ms += MINUTE;
    await wake();
    const [single, ...more] = newCalls();
    expect(more).toEqual([]);
    await single?.succeed();
    await settle();
    expect(newCalls()).toHaveLength(29);
  });

  test("delays neither another shop nor subjects that do not need the platform", async () => {
    const { shop, addShop, receive, wake, settle, newCalls } = await failing();
    await receive(shop, ["quick"], false);
    await receive(await addShop("b"), ["s1"]);
    await wake();
    const [other, quick, ...more] = newCalls();
    expect([other, quick].map((call) => `${call?.domain} ${call?.subject}`)).toEqual(["b s1", "a quick"]);
    await quick?.succeed();
    await settle();
    // The platform did not answer: the shop still waits.
    await receive(shop, ["s31"]);
    await wake();
    expect([more, newCalls()]).toEqual([[], []]);
  });

  test("may refuse one subject without a rest for the others", async () => {
    const { addShop, receive, wake, settle, newCalls } = await processing();
    await receive(await addShop("a"), numbered("s", 33));
    await wake();
    newCalls()[0]?.fail(new PlatformError("refused", "no such field"));
    await settle();
    expect(bySubject(newCalls())).toEqual(["a s33"]);
  });
});

describe("a platform webhook that fails", () => {
  const REFUSED = new SdsError("bad_record", "the record is refused");

  test("is attempted again after 5 seconds, then after longer waits, and stays as failed after 11 attempts", async () => {
    const { store, addShop, receive, wake, settle, newCalls, waits, clock, logged } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["s"]);
    const planned: (number | null)[] = [];
    for (let attempt = 1; attempt <= 11; attempt += 1) {
      await wake();
      const [call, ...more] = newCalls();
      expect(more).toEqual([]);
      call?.fail(REFUSED);
      await settle();
      const [wait = null] = await waits(shop);
      planned.push(wait);
      clock.ms += (wait ?? 0) - 1;
      await wake();
      expect(newCalls()).toEqual([]);
      clock.ms += 1;
    }
    const minutes = [1, 5, 15, 30, 60, 120, 240, 480].map((each) => each * MINUTE);
    expect(planned).toEqual([5 * SECOND, 15 * SECOND, ...minutes, null]);
    expect(await store.inbox.list(shop.id, { limit: 1 })).toMatchObject([
      { status: "failed", attempts: 11, error: "the record is refused" },
    ]);
    expect(logged.map((line) => line.includes("it stays in the inbox as failed"))).toEqual([
      ...Array<boolean>(10).fill(false),
      true,
    ]);
    clock.ms += 24 * 60 * MINUTE;
    await wake();
    expect(newCalls()).toEqual([]);
  });

  test("waits no longer than the newest webhook about its subject must wait", async () => {
    const { addShop, receive, wake, settle, newCalls, waits, clock } = await processing();
    const shop = await addShop("a");
    const failAll = async () => {
      await wake();
      for (const call of newCalls()) call.fail(REFUSED);
      await settle();
    };
    await receive(shop, ["s"]);
    for (const ms of [0, 5 * SECOND, 15 * SECOND]) {
      clock.ms += ms;
      await failAll();
    }
    expect(await waits(shop)).toEqual([MINUTE]);
    clock.ms += MINUTE;
    await receive(shop, ["s"]);
    await failAll();
    expect(await waits(shop)).toEqual([5 * SECOND, 5 * SECOND]);
  });

  test("during a stop is not counted as an attempt, and no further attempt starts", async () => {
    const { store, processor, addShop, receive, wake, newCalls } = await processing();
    const shop = await addShop("a");
    await receive(shop, numbered("s", 9));
    await wake();
    const running = newCalls();
    const stopping = processor.stop();
    for (const call of running) call.fail(DOWN);
    await stopping;
    expect(newCalls()).toEqual([]);
    const entries = await store.inbox.list(shop.id, { limit: 20 });
    expect(entries.map(({ status, attempts }) => `${status} ${attempts}`)).toEqual(Array<string>(9).fill("waiting 0"));
  });
});

describe("a database that fails", () => {
  test("when due webhooks are read is logged, and they are processed after a pause", async () => {
    const { store, addShop, receive, wake, settle, newCalls, endPause, logged } = await processing();
    await receive(await addShop("a"), ["s"]);
    const { dueQueues } = store.inbox;
    store.inbox.dueQueues = () => Promise.reject(new Error("disk I/O error"));
    await wake();
    store.inbox.dueQueues = dueQueues;
    await wake();
    expect(newCalls()).toEqual([]);
    expect(logged.join("")).toContain("disk I/O error");
    endPause();
    await settle();
    expect(newCalls()).toHaveLength(1);
  });

  test("after a webhook failed is logged, and the webhook is processed after a pause", async () => {
    const { store, addShop, receive, wake, settle, newCalls, endPause, logged } = await processing();
    await receive(await addShop("a"), ["s"]);
    await wake();
    const { postpone } = store.inbox;
    store.inbox.postpone = () => Promise.reject(new Error("database is locked"));
    newCalls()[0]?.fail(new SdsError("bad_record", "the record is refused"));
    await settle();
    store.inbox.postpone = postpone;
    expect(newCalls()).toEqual([]);
    expect(logged.join("")).toContain("database is locked");
    endPause();
    await settle();
    expect(newCalls()).toHaveLength(1);
  });
});

test("webhooks received or postponed while the clock was ahead are processed after the clock was set back", async () => {
  const { processor, clock, logged, addShop, receive, wake, newCalls } = await processing();
  const shop = await addShop("a");
  const hour = 60 * MINUTE;
  clock.step(24 * hour);
  await receive(shop, ["postponed"]);
  await wake();
  newCalls()[0]?.fail(new Error("no"));
  await eventually(() => !processor.working);
  await receive(shop, ["received"]);
  clock.step(-24 * hour);
  await wake();
  expect(
    newCalls()
      .map(({ subject }) => subject)
      .toSorted(),
  ).toEqual(["postponed", "received"]);
  expect(logged.join("")).toContain("planned by a clock that was ahead are due now");
});

test("a start processes webhooks that a clock that was ahead planned too late", async () => {
  const { clock, addShop, receive, wake, newCalls } = await processing();
  const shop = await addShop("a");
  clock.step(60 * MINUTE);
  await receive(shop, ["received"]);
  clock.step(-60 * MINUTE);
  await wake();
  expect(newCalls()).toHaveLength(1);
});

test("a webhook that fails because another node has taken over the shop stays unchanged in the inbox", async () => {
  const membership = { ...soleMember(), mayBegin: () => false };
  const { addShop, receive, wake, settle, newCalls, waits, logged } = await processing(membership);
  const shop = await addShop("a");
  await receive(shop, ["s"]);
  const [before] = await waits(shop);
  await wake();
  newCalls()[0]?.fail(new StoreError("conflict", new Error("another node has taken over the work for the shop")));
  await settle();
  expect([await waits(shop), logged]).toEqual([[before ?? null], []]);
});
