import { expect, test } from "bun:test";
import type { Shop } from "../../src/domain/shop.ts";
import { createLog } from "../../src/lib/log.ts";
import { createSlices, nextTurn } from "../../src/lib/turns.ts";
import { createBodyWriter } from "../../src/mirror/body-writer.ts";
import type { IntakeBodyStore } from "../../src/store/port/intake-bodies.ts";
import type { MirrorStore } from "../../src/store/port/mirror.ts";
import type { Store } from "../../src/store/port/store.ts";
import { StoreError } from "../../src/store/port/store-error.ts";
import { removeShop } from "../conformance/fixtures.ts";
import { START, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { openStoreIn } from "../support/open-store.ts";
import { customer, order } from "../support/records.ts";

const parts = (count: number, first = 1) =>
  Array.from({ length: count }, (_, n) => JSON.stringify([customer(first + 2 * n), customer(first + 2 * n + 1)]));

/** Ends pauses at once, but never the longest wait of a start. */
function endPauses(waitMs: number): Promise<void> {
  return waitMs < 5_000 ? nextTurn() : new Promise(() => undefined);
}

async function setUp() {
  const folder = temporaryFolder();
  const store = await openStoreIn(folder);
  afterTest(() => store.close());
  const logged: string[] = [];
  const log = createLog("debug", { write: (text) => logged.push(text) }, () => START);
  /** Numbers of bodies that seem to be of another node. */
  const others = new Set<number>();
  /**
   * Called before each commit that applies parts, before each that stores some, before the answer what waits, and
   * before each look whether something waits for a shop.
   */
  const before = {
    look: (): void => undefined,
    commit: (): void => undefined,
    add: async (): Promise<void> => undefined,
    answer: async (): Promise<void> => undefined,
  };
  const bodies: IntakeBodyStore = {
    ...store.intakeBodies,
    async add(...args) {
      await before.add();
      return store.intakeBodies.add(...args);
    },
    async oldestOfEachShop() {
      const oldest = await store.intakeBodies.oldestOfEachShop();
      await before.answer();
      return oldest.map((body) => ({ ...body, isOfOther: others.has(body.number) }));
    },
    async isWaiting(shopId) {
      before.look();
      return store.intakeBodies.isWaiting(shopId);
    },
  };
  const mirror: Pick<MirrorStore, "applyIntakeParts"> = {
    async applyIntakeParts(...args) {
      before.commit();
      return store.mirror.applyIntakeParts(...args);
    },
  };
  const writer = ({ sleep = endPauses, isShared = false } = {}) => {
    const made = createBodyWriter({
      isShared,
      mirror,
      bodies,
      slices: createSlices(),
      now: () => START,
      sleep,
      log,
      onQueued: () => undefined,
    });
    afterTest(() => made.stop());
    return made;
  };
  const addShop = (domain: string) => store.shops.add({ domain, plan: "pro", currency: "USD" }, START);
  const customers = async (shopId: number) => (await store.shops.rowCounts(shopId)).customers;
  return {
    store,
    writer,
    before,
    others,
    bodies,
    logged,
    addShop,
    customers,
    shop: await addShop("alpha.myshopify.com"),
  };
}

async function appliedOf(submitted: ReturnType<ReturnType<typeof createBodyWriter>["submit"]>): Promise<void> {
  const result = await submitted;
  if ("refused" in result) throw new Error(result.refused.reason);
  await result.applied;
}

test("a body is applied whole before its sender hears of it, and bodies of two shops take turns", async () => {
  const { writer, addShop, shop, customers, store } = await setUp();
  const other = await addShop("beta.myshopify.com");
  const bodyWriter = writer();
  const order: string[] = [];
  const long = appliedOf(bodyWriter.submit(shop, parts(400))).then(() => order.push("long"));
  const short = appliedOf(bodyWriter.submit(other, parts(3))).then(() => order.push("short"));
  await Promise.all([long, short]);
  expect(order).toEqual(["short", "long"]);
  expect([await customers(shop.id), await customers(other.id)]).toEqual([800, 6]);
  expect(await store.intakeBodies.oldestOfEachShop()).toEqual([]);
});

test("a sender does not hear too early of a body that was stored while the database answered what waits", async () => {
  const { writer, before, shop, customers } = await setUp();
  const bodyWriter = writer();
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>();
  before.answer = async () => {
    ask();
    await goesOn;
  };
  bodyWriter.wake();
  await asked;
  const submitted = await bodyWriter.submit(shop, parts(100));
  if ("refused" in submitted) throw new Error("it was refused");
  goOn();
  await submitted.applied;
  expect(await customers(shop.id)).toBe(200);
});

/** What the promise rejects with. */
function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => "it did not fail",
    (thrown: unknown) => thrown,
  );
}

/** A store with a body of 200 customers, of which an earlier run of the program applied some. */
async function interrupted() {
  const all = await setUp();
  const { writer, before, shop, customers } = all;
  const first = writer();
  let commits = 0;
  before.commit = () => {
    commits += 1;
    if (commits === 3) void first.stop();
  };
  const applied = appliedOf(first.submit(shop, parts(100)));
  expect(await failureOf(applied)).toMatchObject({ reason: "busy" });
  await first.stop();
  expect(await customers(shop.id)).toBeWithin(1, 200);
  before.commit = () => undefined;
  return all;
}

test("a stopped program tells the senders that wait, and applies the rest before its next start is over", async () => {
  const { writer, addShop, shop, customers, store, logged } = await interrupted();
  await store.intakeBodies.begin(shop.id);
  const next = writer();
  expect(next.isBehind(shop)).toBe(false);
  const resumed = next.resume();
  expect(next.isBehind(shop)).toBe(true);
  await resumed;
  expect(await customers(shop.id)).toBe(200);
  expect([next.isBehind(shop), next.isBehind(await addShop("beta.myshopify.com"))]).toEqual([false, false]);
  expect(await store.intakeBodies.oldestOfEachShop()).toEqual([]);
  expect(logged.join("")).toContain("bodies of the intake that the last run did not finish are applied first");
});

test("a start does not wait for longer than its limit, and goes on beside other work", async () => {
  const { writer, before, addShop, shop, customers, logged } = await interrupted();
  let locked = true;
  before.commit = () => {
    if (locked) throw new StoreError("busy", new Error("database is locked"));
  };
  const next = writer({ sleep: nextTurn });
  await next.resume();
  expect(logged.join("")).toContain("bodies of the last run take long to apply");
  expect([next.isBehind(shop), next.isBehind(await addShop("beta.myshopify.com"))]).toEqual([true, false]);
  locked = false;
  await eventually(() => !next.isBehind(shop));
  expect(await customers(shop.id)).toBe(200);
});

test("a start ends when the program is stopped", async () => {
  const { writer, before } = await interrupted();
  before.commit = () => {
    throw new StoreError("busy", new Error("database is locked"));
  };
  const next = writer();
  const resumed = next.resume();
  await next.stop();
  await resumed;
});

test("a database that fails in the middle keeps the sender waiting until all is applied", async () => {
  const { writer, before, shop, customers } = await setUp();
  let commits = 0;
  before.commit = () => {
    commits += 1;
    if (commits === 2) throw new StoreError("busy", new Error("database is locked"));
    if (commits === 3) throw new StoreError("lost", new Error("disk I/O error"));
  };
  await appliedOf(writer().submit(shop, parts(100)));
  expect(commits).toBeGreaterThan(3);
  expect(await customers(shop.id)).toBe(200);
});

test("a body that another program removes when it starts can be sent again", async () => {
  const { writer, before, shop, store, customers } = await setUp();
  const bodyWriter = writer();
  before.add = () => store.intakeBodies.removeIncomplete();
  expect(await failureOf(bodyWriter.submit(shop, parts(4)))).toMatchObject({ name: "StoreError", reason: "busy" });
  before.add = async () => undefined;
  await appliedOf(bodyWriter.submit(shop, parts(4)));
  expect(await customers(shop.id)).toBe(8);
});

test("a stop waits for what is being stored, and nothing is stored after it", async () => {
  const { writer, before, shop, store } = await setUp();
  const bodyWriter = writer();
  const { promise: adding, resolve: begin } = Promise.withResolvers<void>();
  const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>();
  let added = 0;
  before.add = async () => {
    added += 1;
    begin();
    await goesOn;
  };
  // More than one commit stores.
  const large = parts(6_000);
  const submitted = failureOf(bodyWriter.submit(shop, large));
  await adding;
  let stopped = false;
  const stop = bodyWriter.stop().then(() => {
    stopped = true;
  });
  await nextTurn();
  expect(stopped).toBe(false);
  goOn();
  await stop;
  expect(await submitted).toMatchObject({ name: "StoreError", reason: "busy" });
  expect(added).toBe(1);
  expect(await failureOf(bodyWriter.submit(shop, parts(1)))).toMatchObject({ name: "StoreError", reason: "busy" });
  expect(await store.intakeBodies.oldestOfEachShop()).toEqual([]);
});

test("a body that cannot be applied is dropped, and the next one is applied", async () => {
  const { writer, shop, customers, store, logged } = await setUp();
  const bodyWriter = writer();
  const bad = appliedOf(bodyWriter.submit(shop, [JSON.stringify([order(9, 1)]), ...parts(50)]));
  const good = appliedOf(bodyWriter.submit(shop, parts(2)));
  expect(await bad.catch((thrown: Error) => thrown.message)).toContain("a checked record was refused");
  await good;
  expect(await customers(shop.id)).toBe(4);
  expect(await store.intakeBodies.oldestOfEachShop()).toEqual([]);
  expect(logged.join("")).toContain("the rest of a body of the intake cannot be applied and is dropped");
});

test("a body that cannot be removed whole either is not reported as applied", async () => {
  const { writer, bodies, shop, store } = await setUp();
  bodies.remove = async (...body) => {
    await store.intakeBodies.remove(...body);
    throw new StoreError("lost", new Error("disk I/O error"));
  };
  const bad = failureOf(appliedOf(writer().submit(shop, [JSON.stringify([order(9, 1)])])));
  expect(await bad).toMatchObject({ message: expect.stringContaining("a checked record was refused") });
});

/** Stores a body as another process does. */
async function storeBody({ intakeBodies }: Store, { id }: Shop, given: readonly string[]): Promise<number> {
  const number = (await intakeBodies.begin(id)) ?? 0;
  await intakeBodies.add(id, number, given);
  expect(await intakeBodies.complete(id, number, given.length)).toBe(true);
  return number;
}

test("a body of another node is left to it while it is alive, and those of its shop wait behind it", async () => {
  const { writer, before, others, shop, addShop, store, customers } = await setUp();
  const other = await addShop("beta.myshopify.com");
  let looks = 0;
  before.answer = async () => {
    looks += 1;
  };
  const bodyWriter = writer({ isShared: true });
  await bodyWriter.resume();
  others.add(await storeBody(store, shop, parts(2)));
  const behind = appliedOf(bodyWriter.submit(shop, parts(2, 11)));
  await appliedOf(bodyWriter.submit(other, parts(2)));
  looks = 0;
  await eventually(() => looks > 3);
  expect([await customers(shop.id), await customers(other.id)]).toEqual([0, 4]);
  expect(bodyWriter.isBehind(shop)).toBe(false);
  others.clear();
  await behind;
  expect(await customers(shop.id)).toBe(8);
});

test("a start applies the body of a node that was killed just now, and drops nothing of it", async () => {
  const { writer, others, shop, addShop, store, customers, logged } = await setUp();
  const other = await addShop("beta.myshopify.com");
  others.add(await storeBody(store, shop, parts(2)));
  const bodyWriter = writer({ isShared: true });
  await bodyWriter.resume();
  expect(await customers(shop.id)).toBe(4);
  expect(logged.join("")).toContain("bodies of the intake that the last run did not finish are applied first");
  await bodyWriter.stop();
  others.add(await storeBody(store, other, [JSON.stringify([order(9, 1)])]));
  const next = writer({ isShared: true });
  void next.resume();
  await eventually(() => logged.join("").includes("nothing is lost, the next turn tries again"));
  expect(await store.intakeBodies.isWaiting(other.id)).toBe(true);
  others.clear();
  await eventually(async () => !(await store.intakeBodies.isWaiting(other.id)));
});

test("however many small posts wait for the body of another node, one of them asks for it", async () => {
  const { writer, before, shop, store } = await setUp();
  const number = await storeBody(store, shop, parts(2));
  let looks = 0;
  before.look = () => {
    looks += 1;
  };
  const pauses: (() => void)[] = [];
  const { waitForBodies } = writer({
    sleep: (ms) => new Promise((resolve) => void (ms < 5_000 && pauses.push(resolve))),
  });
  const waiting = Promise.all(Array.from({ length: 20 }, () => waitForBodies(shop)));
  await eventually(() => pauses.length > 0);
  await nextTurn();
  expect([looks, pauses.length]).toEqual([40, 1]);
  pauses[0]?.();
  await eventually(() => pauses.length > 1);
  await nextTurn();
  expect([looks, pauses.length]).toEqual([41, 2]);
  await store.intakeBodies.remove(shop.id, number);
  pauses[1]?.();
  expect(new Set(await waiting)).toEqual(new Set([true]));
});

test("a body whose shop is removed meanwhile is refused, or ends with it", async () => {
  const { writer, before, shop, store } = await setUp();
  const bodyWriter = writer();
  let removal: Promise<boolean> | undefined;
  before.commit = () => {
    removal ??= removeShop(store, shop.domain);
  };
  await appliedOf(bodyWriter.submit(shop, parts(200)));
  expect(await removal).toBe(true);
  expect(await bodyWriter.submit(shop, parts(1))).toEqual({
    refused: { index: 0, field: "", reason: `is for a shop that was removed: ${shop.domain}` },
  });
});
