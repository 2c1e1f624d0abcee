import { describe, expect, test } from "bun:test";
import { START } from "../support/app.ts";
import { engines, storeWithTwoShops } from "./engines.ts";
import { failures } from "./fixtures.ts";
import { queue, receive, subjectsOf } from "./received.ts";

describe.each(engines())("$name: inbox items", (engine) => {
  test("are read by their numbers, in that order, only in their own shop", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const [a, b] = await receive(store, shop, ["a", "b", "c"], {
      body: '{"n":1}',
      triggeredAt: START - 9,
      topic: "orders/edited",
    });
    const [d] = await receive(store, other, ["d"]);
    const stored = { shopId: shop.id, topic: "orders/edited", body: '{"n":1}', triggeredAt: START - 9 };
    const item = { ...stored, attempts: 0, error: null };
    expect(await store.inbox.read(shop.id, [b, d, a, 9_999].map(Number))).toEqual([
      { number: a ?? 0, subject: "a", ...item },
      { number: b ?? 0, subject: "b", ...item },
    ]);
    expect(await store.inbox.read(shop.id, [])).toEqual([]);
  });

  test("that could not be processed wait for their next attempt, or fail", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const [a, b, c] = await receive(store, shop, ["a", "b", "c"]);
    const [d] = await receive(store, other, ["d"]);
    await store.inbox.postpone(shop.id, [a, b, d].map(Number), "the platform is down", START + 60);
    await store.inbox.postpone(shop.id, [Number(b)], "it is unknown", null);
    const statesOf = (await rows("inbox")).map(({ subject, status, attempts, next_attempt_at, error }) => [
      subject,
      status,
      attempts,
      next_attempt_at,
      error,
    ]);
    expect(statesOf).toEqual([
      ["a", "waiting", 1, START + 60, "the platform is down"],
      ["b", "failed", 2, null, "it is unknown"],
      ["c", "waiting", 0, START, null],
      ["d", "waiting", 0, START, null],
    ]);
    expect(subjectsOf(await store.inbox.due(queue(shop), START + 59, 10))).toEqual(["c"]);
    expect(subjectsOf(await store.inbox.due(queue(shop), START + 60, 10))).toEqual(["c", "a"]);
    expect(await store.inbox.read(shop.id, [a, c].map(Number))).toMatchObject([{ attempts: 1 }, { attempts: 0 }]);
    expect(await store.inbox.count(shop.id)).toEqual({ waiting: 2, failed: 1 });
    expect(await store.inbox.count(other.id)).toEqual({ waiting: 1, failed: 0 });
  });

  test("are listed newest first, and by status", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const [a, b] = await receive(store, shop, ["a", "b", "c"]);
    await receive(store, other, ["d"]);
    await store.inbox.postpone(shop.id, [a, b].map(Number), "no", null);
    const listed = async (filter: { limit: number; status?: "waiting" | "failed" }) =>
      subjectsOf(await store.inbox.list(shop.id, filter));
    expect(await listed({ limit: 10 })).toEqual(["c", "b", "a"]);
    expect(await listed({ limit: 2 })).toEqual(["c", "b"]);
    expect(await listed({ limit: 10, status: "failed" })).toEqual(["b", "a"]);
    expect(await listed({ limit: 1, status: "failed" })).toEqual(["b"]);
    expect(await listed({ limit: 10, status: "waiting" })).toEqual(["c"]);
    expect((await store.inbox.list(shop.id, { limit: 10, status: "failed" }))[1]).toEqual({
      number: a ?? 0,
      topic: "orders/create",
      subject: "a",
      status: "failed",
      attempts: 1,
      error: "no",
      receivedAt: START,
      nextAttemptAt: null,
    });
  });
});

describe.each(engines())("$name: retrying inbox items by hand", (engine) => {
  test("makes an item due now, with its attempts counted from 0", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const [a, b] = await receive(store, shop, ["a", "b"]);
    await store.inbox.postpone(shop.id, [a, b].map(Number), "no", null);
    await store.inbox.retry(shop.id, Number(a), START + 70);
    expect(
      (await rows("inbox")).map(({ status, attempts, next_attempt_at }) => [status, attempts, next_attempt_at]),
    ).toEqual([
      ["waiting", 0, START + 70],
      ["failed", 1, null],
    ]);
    const refused = await failures([
      store.inbox.retry(other.id, Number(b), START),
      store.inbox.retry(shop.id, 9_999, START),
    ]);
    expect(refused).toMatchObject(
      [Number(b), 9_999].map((number) => ({
        code: "not_found",
        message: `there is no item with the id ${number} in the inbox`,
      })),
    );
    expect(await store.inbox.count(shop.id)).toEqual({ waiting: 1, failed: 1 });
  });

  test("gives an item the content of several items", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const [a = 0, b = 0, c = 0] = await receive(store, shop, ["a", "a", "c"]);
    const [d = 0] = await receive(store, other, ["d"]);
    const merged = { number: a, topic: "subscription_contracts/update", body: '{"n":1}', triggeredAt: START + 9 };
    await store.inbox.merge(shop.id, merged, [b, d]);
    expect(await store.inbox.read(shop.id, [a, b])).toMatchObject([{ ...merged, subject: "a", attempts: 0 }]);
    expect((await store.inbox.list(shop.id, { limit: 9 })).map(({ number }) => number)).toEqual([c, a]);
    expect(await store.inbox.count(other.id)).toEqual({ waiting: 1, failed: 0 });
  });

  test("notes why the waiting items about a subject are there", async () => {
    const { store, shop } = await storeWithTwoShops(engine);
    const [, failed] = await receive(store, shop, ["a", "a", "b"]);
    const [own = 0] = await receive(store, shop, ["c"], { error: "no title" });
    expect(await store.inbox.read(shop.id, [own])).toMatchObject([{ error: "no title", attempts: 0 }]);
    await store.inbox.postpone(shop.id, [Number(failed)], "no", null);
    await store.inbox.noteError(shop.id, "a", "no field");
    const entries = await store.inbox.list(shop.id, { limit: 9 });
    expect(entries.map(({ subject, error, attempts }) => [subject, error, attempts])).toEqual([
      ["c", "no title", 0],
      ["b", null, 0],
      ["a", "no", 1],
      ["a", "no field", 0],
    ]);
  });

  test("makes failed items about one subject due now, and tells whether the subject has items", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const [failed, , , another] = await receive(store, shop, ["a", "b", "c", "a"]);
    await receive(store, other, ["d"]);
    await store.inbox.postpone(shop.id, [failed, another].map(Number), "no", null);
    const before = await rows("inbox");
    expect(await store.inbox.retryAbout(shop.id, "b", START + 70)).toBe(true);
    expect(await store.inbox.retryAbout(shop.id, "d", START + 70)).toBe(false);
    expect(await rows("inbox")).toEqual(before);
    expect(await store.inbox.retryAbout(shop.id, "a", START + 70)).toBe(true);
    const entries = await store.inbox.list(shop.id, { limit: 9 });
    expect(entries.filter(({ subject }) => subject === "a")).toMatchObject([
      { status: "waiting", attempts: 0, nextAttemptAt: START + 70 },
      { status: "waiting", attempts: 0, nextAttemptAt: START + 70 },
    ]);
  });

  test("makes all failed items due now, and does not change items that wait for their next attempt", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const [a, b, c] = await receive(store, shop, ["a", "b", "c"]);
    const [d] = await receive(store, other, ["d"]);
    await store.inbox.postpone(shop.id, [a, b].map(Number), "no", null);
    await store.inbox.postpone(shop.id, [Number(c)], "no", START + 500);
    await store.inbox.postpone(other.id, [Number(d)], "no", null);
    expect(await store.inbox.retryFailed(shop.id, START + 70)).toBe(2);
    expect(
      (await rows("inbox")).map(({ status, attempts, next_attempt_at }) => [status, attempts, next_attempt_at]),
    ).toEqual([
      ["waiting", 0, START + 70],
      ["waiting", 0, START + 70],
      ["waiting", 1, START + 500],
      ["failed", 1, null],
    ]);
    expect(await store.inbox.retryFailed(shop.id, START + 70)).toBe(0);
  });
});
