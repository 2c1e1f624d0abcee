import { describe, expect, test } from "bun:test";
import { START } from "../support/app.ts";
import { engines, storeInTwoProcesses, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { addShop, receipt, receiveAll, removeShop } from "./fixtures.ts";
import { queue, receive, subjectsOf } from "./received.ts";

describe.each(engines())("$name: receiving platform webhooks", (engine) => {
  test("stores each webhook unchanged, due at once", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const given = receipt(shop, "w1", {
      topic: "orders/paid",
      subject: "contract 7",
      body: '{"a":"é ☕"}',
      triggeredAt: START - 5,
      needsPlatform: false,
    });
    expect(await store.inbox.receive([given], START)).toEqual([true]);
    const [row] = await rows("inbox");
    expect(row).toEqual({
      number: row?.["number"],
      shop_id: shop.id,
      topic: "orders/paid",
      subject: "contract 7",
      needs_platform: false,
      body: '{"a":"é ☕"}',
      triggered_at: START - 5,
      received_at: START,
      status: "waiting",
      attempts: 0,
      next_attempt_at: START,
      error: null,
    });
    expect(await rows("platform_webhooks")).toEqual([{ shop_id: shop.id, id: "w1", received_at: START }]);
  });

  test("puts an urgent webhook before all waiting ones, and lists it as due since its arrival", async () => {
    const { store, shop } = await storeWithShop(engine);
    await receive(store, shop, ["old"]);
    await receive(store, shop, ["new"], { waitMs: 3 }, START + 5);
    await receive(store, shop, ["urgent"], { isUrgent: true, waitMs: 3 }, START + 6);
    expect(subjectsOf(await store.inbox.due(queue(shop), START + 6, 9))).toEqual(["urgent", "old"]);
    expect(subjectsOf(await store.inbox.due(queue(shop), START + 8, 1))).toEqual(["urgent"]);
    const listed = await store.inbox.list(shop.id, { limit: 9 });
    expect(listed.map(({ subject, nextAttemptAt }) => [subject, nextAttemptAt])).toEqual([
      ["urgent", START + 6],
      ["new", START + 8],
      ["old", START],
    ]);
  });

  test("stores a repeated webhook once, by its id in its shop, and returns the new ones", async () => {
    const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    expect(
      await receiveAll(store, [receipt(alpha, "w1"), receipt(alpha, "w2"), receipt(alpha, "w1"), receipt(beta, "w1")]),
    ).toEqual([true, true, false, true]);
    expect(await store.inbox.receive([receipt(alpha, "w2"), receipt(alpha, "w3")], START + 1)).toEqual([false, true]);
    expect([await store.inbox.count(alpha.id), await store.inbox.count(beta.id)]).toMatchObject([
      { waiting: 3 },
      { waiting: 1 },
    ]);
  });

  test("stores every webhook without an id", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    expect(await store.inbox.receive([receipt(shop, null), receipt(shop, null)], START)).toEqual([true, true]);
    expect(await store.inbox.count(shop.id)).toEqual({ waiting: 2, failed: 0 });
    expect(await rows("platform_webhooks")).toEqual([]);
  });

  test("drops webhooks of a removed shop, and stores the others", async () => {
    const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    await removeShop(store, alpha.domain);
    expect(await store.inbox.receive([receipt(alpha, "w1"), receipt(beta, "w1"), receipt(alpha, null)], START)).toEqual(
      [false, true, false],
    );
    expect(await store.inbox.receive([], START)).toEqual([]);
  });

  test("by two processes at once stores each webhook once", async () => {
    const { store, second: other, shop } = await storeInTwoProcesses(engine);
    const ids = Array.from({ length: 10 }, (_, n) => `w${n}`);
    const answers = await Promise.all(
      ids.flatMap((id) => [store, other].map((each) => each.inbox.receive([receipt(shop, id)], START))),
    );
    expect(answers.flat().filter(Boolean)).toHaveLength(10);
    expect(await store.inbox.count(shop.id)).toEqual({ waiting: 10, failed: 0 });
  });

  test("by two processes at once, in another order, stores each webhook once", async () => {
    const { store, reopen } = await engine.open();
    const other = await reopen();
    const shops = [await addShop(store, "alpha"), await addShop(store, "beta")];
    for (let round = 0; round < 10; round += 1) {
      const receipts = shops.flatMap((shop) =>
        Array.from({ length: 20 }, (_, n) => receipt(shop, `w${round}-${n}`, { subject: `s${n}` })),
      );
      const [ours, theirs] = await Promise.all([
        store.inbox.receive(receipts, START),
        other.inbox.receive(receipts.toReversed(), START),
      ]);
      const isNew = receipts.map((_, n) => [ours?.[n], theirs?.[receipts.length - 1 - n]]);
      expect(isNew.every(([a, b]) => a !== b)).toBe(true);
    }
    for (const shop of shops) {
      const items = await store.inbox.list(shop.id, { limit: 1_000 });
      expect(items).toHaveLength(200);
      expect(new Set(items.map(({ number }) => number)).size).toBe(200);
    }
  });

  test("numbers the webhooks in the given order", async () => {
    const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    const ids = ["c", "a", "d", null, "b", "a", null];
    await receiveAll(
      store,
      ids.flatMap((id, n) => [alpha, beta].map((shop) => receipt(shop, id, { subject: `s${n}` }))),
    );
    for (const shop of [alpha, beta])
      expect(subjectsOf(await store.inbox.list(shop.id, { limit: 9 })).toReversed()).toEqual([
        "s0",
        "s1",
        "s2",
        "s3",
        "s4",
        "s6",
      ]);
  });

  test("remembers the time of the last webhook, and all ids until they are pruned", async () => {
    const { store } = await engine.open();
    const [alpha, beta, idle] = [
      await addShop(store, "alpha"),
      await addShop(store, "beta"),
      await addShop(store, "idle"),
    ];
    for (const shop of [alpha, beta])
      for (const n of [2, 1, 3]) await store.inbox.receive([receipt(shop, `w${n}`)], START + n);
    await store.inbox.receive([receipt(alpha, "w1")], START + 9);
    expect(await store.inbox.lastReceivedAt(alpha.id)).toBe(START + 3);
    expect(await store.inbox.lastReceivedAt(idle.id)).toBeNull();
    await store.inbox.forgetReceipts(START + 3);
    for (const shop of [alpha, beta]) {
      expect(
        await receiveAll(
          store,
          ["w1", "w2", "w3"].map((id) => receipt(shop, id)),
          START + 10,
        ),
      ).toEqual([true, true, false]);
    }
    await store.inbox.forgetReceipts(START + 11);
    expect(await store.inbox.lastReceivedAt(alpha.id)).toBeNull();
  });
});

describe.each(engines())("$name: inbox queues", (engine) => {
  test("are listed if they have a due item, by shop, with and without a need for the platform", async () => {
    const { store } = await engine.open();
    const [alpha, beta, idle] = [await addShop(store, "z"), await addShop(store, "y"), await addShop(store, "idle")];
    await receive(store, beta, ["a", "b"], { needsPlatform: true }, START + 1);
    await receive(store, beta, ["a"], { needsPlatform: false }, START + 2);
    await receive(store, alpha, ["a"], { needsPlatform: true }, START + 2);
    const [failed] = await receive(store, idle, ["a"]);
    await store.inbox.postpone(idle.id, [failed ?? 0], "no", null);
    expect(await store.inbox.dueQueues(START)).toEqual([]);
    expect(await store.inbox.dueQueues(START + 1)).toEqual([queue(beta)]);
    const all = await store.inbox.dueQueues(START + 2);
    expect(all.map(({ shopId }) => shopId)).toEqual([alpha.id, beta.id, beta.id]);
    expect(all).toEqual(expect.arrayContaining([queue(alpha), queue(beta), queue(beta, false)]));
  });

  test("give the oldest due items first, and items of the same time by number", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    await receive(store, shop, ["late"], {}, START + 5);
    const [first, second] = await receive(store, shop, ["first", "second", "third"]);
    await receive(store, shop, ["here"], { needsPlatform: false });
    await receive(store, other, ["other"]);
    expect(subjectsOf(await store.inbox.due(queue(shop), START + 4, 10))).toEqual(["first", "second", "third"]);
    expect(await store.inbox.due(queue(shop), START + 5, 2)).toEqual([
      { number: first ?? 0, subject: "first" },
      { number: second ?? 0, subject: "second" },
    ]);
    await store.inbox.postpone(shop.id, [first ?? 0], "no", START + 4);
    expect(subjectsOf(await store.inbox.due(queue(shop), START + 5, 10))).toEqual(["second", "third", "first", "late"]);
    expect(subjectsOf(await store.inbox.due(queue(shop, false), START, 10))).toEqual(["here"]);
    expect(await store.inbox.due(queue(shop), START - 1, 10)).toEqual([]);
  });

  test("give all waiting items about one subject, due or not, ordered by number", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const [a, , later, failed] = await receive(store, shop, ["s", "other", "s", "s"], { body: "{}" }, START + 9);
    const [soon] = await receive(store, shop, ["s"]);
    const [waits] = await receive(store, shop, ["s"], { waitMs: 3 });
    await receive(store, shop, ["s"], { needsPlatform: false });
    await receive(store, other, ["s"]);
    await store.inbox.postpone(shop.id, [later ?? 0], "no", START + 1_000);
    await store.inbox.postpone(shop.id, [failed ?? 0], "no", null);
    const about = async (limit: number) =>
      (await store.inbox.waitingAbout(queue(shop), "s", limit)).map(({ number }) => number);
    expect(await about(10)).toEqual([a, later, soon, waits].map(Number));
    expect(await about(3)).toEqual([a, soon, waits].map(Number));
    expect(await store.inbox.waitingAbout(queue(shop), "s", 1)).toEqual(
      await store.inbox.read(shop.id, [Number(soon)]),
    );
    expect(subjectsOf(await store.inbox.due(queue(shop), START + 2, 10))).toEqual(["s"]);
    expect(subjectsOf(await store.inbox.due(queue(shop), START + 3, 10))).toEqual(["s", "s"]);
  });

  test("bring forward items that were planned too late, and never attempted items sooner", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const hour = 3_600_000;
    const [late, soon, failed] = await receive(store, shop, ["late", "soon", "failed"], {}, START + hour);
    await store.inbox.postpone(shop.id, [late ?? 0], "no", START + hour);
    await store.inbox.postpone(shop.id, [soon ?? 0], "no", START + 60);
    await store.inbox.postpone(shop.id, [failed ?? 0], "no", null);
    await receive(store, shop, new Array(450).fill("new"), { needsPlatform: false }, START + 9);
    await receive(store, shop, ["waits"], { waitMs: 8 });
    await receive(store, other, ["past"], {}, START - 60);
    await receive(store, other, ["other"], {}, START + 60);
    const latest = { first: START + 8, further: START + 60 };
    expect(await store.inbox.bringForward(latest, START)).toBe(1 + 450 + 1);
    const times = (await rows("inbox")).map(({ subject, next_attempt_at }) => `${subject} ${next_attempt_at}`);
    expect(new Set(times)).toEqual(
      new Set([
        `late ${START}`,
        `soon ${START + 60}`,
        "failed null",
        `new ${START}`,
        `waits ${START + 8}`,
        `past ${START - 60}`,
        `other ${START}`,
      ]),
    );
    expect(await store.inbox.bringForward(latest, START)).toBe(0);
  });

  test("know the waiting subjects, due or not", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const [, b, c] = await receive(store, shop, ["a", "b", "c", "a"]);
    await receive(store, other, ["d"]);
    await store.inbox.postpone(shop.id, [b ?? 0], "no", START + 1_000);
    await store.inbox.postpone(shop.id, [c ?? 0], "no", null);
    expect(await store.inbox.waitingSubjects(shop.id)).toEqual(new Set(["a", "b"]));
  });
});
