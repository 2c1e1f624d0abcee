import { describe, expect, test } from "bun:test";
import { countingLoop, loopInTurn, loopWith, settle } from "./loops.ts";

describe("wake", () => {
  test("makes no turn at once, but a turn soon", async () => {
    const { loop, state } = countingLoop();
    loop.wake();
    expect(state.begun).toBe(0);
    await settle();
    expect(state).toMatchObject({ begun: 1, ended: 1 });
  });

  test("makes one turn for many calls at once", async () => {
    const { loop, state } = countingLoop();
    for (let n = 0; n < 100; n += 1) loop.wake();
    await settle();
    expect(state.begun).toBe(1);
  });

  test("makes one turn for all events of one round of the event loop", async () => {
    const happened: string[] = [];
    const seen: string[][] = [];
    const { loop } = loopWith(async () => {
      seen.push(happened.splice(0));
    });
    for (const name of ["a", "b", "c"]) {
      setImmediate(() => {
        happened.push(name);
        loop.wake();
      });
    }
    await settle();
    expect(seen).toEqual([["a", "b", "c"]]);
  });

  test("during a turn makes another turn after it", async () => {
    const { loop, state, release } = await loopInTurn();
    loop.wake();
    loop.wake();
    await settle();
    expect(state.begun).toBe(1);
    release();
    await settle();
    expect(state).toMatchObject({ begun: 2, ended: 2, most: 1 });
  });

  test("after the end of a turn makes another turn", async () => {
    const { loop, state } = countingLoop();
    for (let n = 1; n <= 3; n += 1) {
      loop.wake();
      await settle();
      expect(state.begun).toBe(n);
    }
  });
});

describe("a turn that fails", () => {
  async function failed() {
    const all = countingLoop();
    all.state.error = new Error("disk is full");
    all.loop.wake();
    await settle();
    return all;
  }

  test("is reported, and made again after a pause, without a wake", async () => {
    const { loop, state, pauses, failures } = await failed();
    expect(state.begun).toBe(1);
    expect(failures).toEqual([new Error("disk is full")]);
    expect(pauses.map(({ ms }) => ms)).toEqual([900]);
    pauses[0]?.end();
    await settle();
    expect(state.begun).toBe(2);
    expect(failures).toHaveLength(2);
    expect(pauses).toHaveLength(2);
    state.error = undefined;
    pauses[1]?.end();
    await settle();
    expect(state.begun).toBe(3);
    expect([loop.busy, pauses.length]).toEqual([false, 2]);
  });

  test("delays wakes until the end of the pause", async () => {
    const { loop, state, pauses } = await failed();
    state.error = undefined;
    loop.wake();
    loop.wake();
    await settle();
    expect(state.begun).toBe(1);
    pauses[0]?.end();
    await settle();
    expect(state.begun).toBe(2);
  });

  test("delays a wake that came during the turn", async () => {
    const { loop, state, hold, release, pauses } = countingLoop();
    state.error = new Error("disk is full");
    hold();
    loop.wake();
    await settle();
    loop.wake();
    release();
    await settle();
    expect([state.begun, pauses.length]).toEqual([1, 1]);
  });

  test("sets `failing` until a turn succeeds", async () => {
    const { loop, state, pauses } = await failed();
    expect(loop.failing).toBe(true);
    state.error = undefined;
    expect(loop.failing).toBe(true);
    pauses[0]?.end();
    await settle();
    expect(loop.failing).toBe(false);
  });
});

describe("tracked work", () => {
  test("makes a turn when it ends", async () => {
    const { loop, state } = countingLoop();
    const { promise, resolve } = Promise.withResolvers<void>();
    loop.track(promise);
    await settle();
    expect(state.begun).toBe(0);
    resolve();
    await settle();
    expect(state.begun).toBe(1);
  });

  test("that fails is reported, and its turn waits for a pause", async () => {
    const { loop, state, pauses, failures } = countingLoop();
    loop.track(Promise.reject(new Error("disk is full")));
    await settle();
    expect(failures).toEqual([new Error("disk is full")]);
    expect([loop.failing, state.begun]).toEqual([true, 0]);
    pauses[0]?.end();
    await settle();
    expect([loop.failing, state.begun]).toEqual([false, 1]);
  });

  test("that fails during a pause does not lengthen it", async () => {
    const { loop, state, pauses, failures } = countingLoop();
    for (const name of ["a", "b", "c"]) loop.track(Promise.reject(new Error(name)));
    await settle();
    expect([failures.length, pauses.length]).toEqual([3, 1]);
    pauses[0]?.end();
    await settle();
    expect(state.begun).toBe(1);
  });

  test("that fails after a pause makes a new pause", async () => {
    const { loop, pauses } = countingLoop();
    loop.track(Promise.reject(new Error("a")));
    await settle();
    pauses[0]?.end();
    await settle();
    loop.track(Promise.reject(new Error("b")));
    await settle();
    expect(pauses).toHaveLength(2);
  });
});

test("a loop is busy from a wake to the end of its turn, and while work runs", async () => {
  const { loop, hold, release } = countingLoop();
  expect(loop.busy).toBe(false);
  hold();
  loop.wake();
  expect(loop.busy).toBe(true);
  await settle();
  expect(loop.busy).toBe(true);
  release();
  await settle();
  expect(loop.busy).toBe(false);
  const { promise, resolve } = Promise.withResolvers<void>();
  loop.track(promise);
  expect(loop.busy).toBe(true);
  resolve();
  await settle();
  expect(loop.busy).toBe(false);
});
