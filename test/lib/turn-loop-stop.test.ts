import { describe, expect, test } from "bun:test";
import { countingLoop, eventOf, loopInTurn, loopWith, settle } from "./loops.ts";

describe("stop", () => {
  test("of an idle loop makes no turn", async () => {
    const { loop, state } = countingLoop();
    await loop.stop();
    expect(state.begun).toBe(0);
  });

  test("waits for the turn under way", async () => {
    const { loop, state, release } = await loopInTurn();
    const stopped = eventOf(loop.stop());
    await settle();
    expect(stopped.happened).toBe(false);
    release();
    await settle();
    expect(stopped.happened).toBe(true);
    expect(state.begun).toBe(1);
  });

  test("makes the requested turn before it ends", async () => {
    const { loop, state } = countingLoop();
    loop.wake();
    await loop.stop();
    expect(state).toMatchObject({ begun: 1, ended: 1 });
    await settle();
    expect(state.begun).toBe(1);
  });

  test("waits for all work", async () => {
    const { loop } = countingLoop();
    const works = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    for (const { promise } of works) loop.track(promise);
    const stopped = eventOf(loop.stop());
    works[0].resolve();
    await settle();
    expect(stopped.happened).toBe(false);
    works[1].resolve();
    await settle();
    expect(stopped.happened).toBe(true);
  });

  test("waits for work that the turn under way starts", async () => {
    const begun = Promise.withResolvers<void>();
    const work = Promise.withResolvers<void>();
    const { loop } = loopWith(async () => {
      if (loop.stopping) return;
      await begun.promise;
      loop.track(work.promise);
    });
    loop.wake();
    await settle();
    const stopped = eventOf(loop.stop());
    begun.resolve();
    await settle();
    expect(stopped.happened).toBe(false);
    work.resolve();
    await settle();
    expect(stopped.happened).toBe(true);
  });

  test("still makes turns for ended work, and these turns see that the loop is stopping", async () => {
    const works = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const turns: boolean[] = [];
    const { loop } = loopWith(async () => {
      turns.push(loop.stopping);
    });
    for (const { promise } of works) loop.track(promise);
    loop.wake();
    await settle();
    expect(turns).toEqual([false]);
    const stopping = loop.stop();
    works[0].resolve();
    await settle();
    expect(turns).toEqual([false, true]);
    works[1].resolve();
    await stopping;
    expect(turns).toEqual([false, true, true]);
  });

  test("pauses between failed turns while work runs", async () => {
    const { loop, state, pauses } = countingLoop();
    const { promise, resolve } = Promise.withResolvers<void>();
    loop.track(promise);
    const stopping = loop.stop();
    state.error = new Error("disk is full");
    loop.track(Promise.resolve());
    await settle();
    expect([state.begun, pauses.length]).toEqual([1, 1]);
    pauses[0]?.end();
    await settle();
    expect([state.begun, pauses.length]).toEqual([2, 2]);
    resolve();
    await stopping;
  });

  test("ends a pause, and tries the failed turn once more", async () => {
    const { loop, state, failures } = countingLoop();
    state.error = new Error("disk is full");
    loop.wake();
    await settle();
    await loop.stop();
    await loop.stop();
    expect([state.begun, failures.length]).toEqual([2, 2]);
    await settle();
    expect([state.begun, loop.busy]).toEqual([2, false]);
  });

  test("may be called twice: both calls wait for the same end", async () => {
    const { loop, state, release } = await loopInTurn();
    const stopped = [eventOf(loop.stop()), eventOf(loop.stop())];
    await settle();
    expect(stopped.map(({ happened }) => happened)).toEqual([false, false]);
    release();
    await settle();
    expect(stopped.map(({ happened }) => happened)).toEqual([true, true]);
    await loop.stop();
    expect(state.begun).toBe(1);
  });

  test("ends the effect of wakes", async () => {
    const { loop, state, release } = await loopInTurn();
    const stopping = loop.stop();
    expect(loop.stopping).toBe(true);
    loop.wake();
    release();
    await stopping;
    loop.wake();
    await settle();
    expect(state.begun).toBe(1);
  });
});
