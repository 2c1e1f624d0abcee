import { expect, test } from "bun:test";
import { createGroupCommit, type Overtaking } from "../../src/lib/group-commit.ts";
import { nextTurn } from "../../src/lib/waits.ts";
import { eventually } from "../support/eventually.ts";

interface Item {
  shop: string;
  n: number;
}

/** Makes a group commit. A commit waits while one of its shops is locked. */
function opened(overtaking?: Overtaking<Item>) {
  const locks = new Map<string, PromiseWithResolvers<void>>();
  const begun: string[] = [];
  const ended: string[] = [];
  const commits = createGroupCommit<Item, number>({
    async commit(items) {
      const name = items.map(({ shop, n }) => `${shop}${n}`).join(" ");
      begun.push(name);
      for (const { shop } of items) await locks.get(shop)?.promise;
      ended.push(name);
      return items.map(({ n }) => n);
    },
    sizeOf: () => 1,
    maxSize: 3,
    failsAll: () => true,
    ...(overtaking !== undefined && { overtaking }),
  });
  const lock = (shop: string) => locks.set(shop, Promise.withResolvers<void>());
  const unlock = (shop: string) => locks.get(shop)?.resolve();
  return { ...commits, begun, ended, lock, unlock };
}

/** Waits for three timers of more than `ms`, one after another. Timers of up to `ms` run before them. */
async function timersLaterThan(ms: number): Promise<void> {
  for (let timer = 0; timer < 3; timer += 1) await new Promise((resolve) => setTimeout(resolve, ms + 1));
}

const OVERTAKING: Overtaking<Item> = { afterMs: 5, keyOf: ({ shop }) => shop };

test("items that are submitted together share commits, in their order", async () => {
  const { submit, begun } = opened();
  expect(await Promise.all([1, 2, 3, 4].map((n) => submit({ shop: "a", n })))).toEqual([1, 2, 3, 4]);
  expect(begun).toEqual(["a1 a2 a3", "a4"]);
});

test("an item that is submitted one turn of the event loop later shares the commit too", async () => {
  const { submit, begun } = opened();
  const first = submit({ shop: "a", n: 1 });
  await nextTurn();
  expect(await Promise.all([first, submit({ shop: "a", n: 2 })])).toEqual([1, 2]);
  expect(begun).toEqual(["a1 a2"]);
});

test("without overtaking, a commit that waits for a lock delays all other commits", async () => {
  const { submit, drain, begun, ended, lock, unlock } = opened();
  lock("a");
  const first = submit({ shop: "a", n: 1 });
  await eventually(() => begun.length === 1);
  const second = submit({ shop: "b", n: 2 });
  unlock("a");
  await Promise.all([first, second]);
  await drain();
  expect(ended).toEqual(["a1", "b2"]);
});

test("with overtaking, only the items with the same keys wait, in their order", async () => {
  const { submit, drain, begun, ended, lock, unlock } = opened(OVERTAKING);
  lock("a");
  const locked = [submit({ shop: "a", n: 1 })];
  await eventually(() => begun.length === 1);
  locked.push(submit({ shop: "a", n: 2 }));
  expect(await submit({ shop: "b", n: 3 })).toBe(3);
  locked.push(submit({ shop: "a", n: 4 }));
  expect(await Promise.all([5, 6].map((n) => submit({ shop: "c", n })))).toEqual([5, 6]);
  expect([begun, ended]).toEqual([
    ["a1", "b3", "c5 c6"],
    ["b3", "c5 c6"],
  ]);
  const drained = drain();
  unlock("a");
  await drained;
  expect(ended).toEqual(["b3", "c5 c6", "a1", "a2 a4"]);
  expect(await Promise.all(locked)).toEqual([1, 2, 4]);
});

test("a queue that waits for a lock is not polled", async () => {
  let keyReads = 0;
  const keyOf = ({ shop }: Item) => {
    keyReads += 1;
    return shop;
  };
  const { submit, begun, lock, unlock } = opened({ ...OVERTAKING, keyOf });
  lock("a");
  const locked = [submit({ shop: "a", n: 1 })];
  await eventually(() => begun.length === 1);
  locked.push(submit({ shop: "a", n: 2 }));
  await timersLaterThan(OVERTAKING.afterMs);
  const before = keyReads;
  await timersLaterThan(OVERTAKING.afterMs);
  expect(keyReads).toBe(before);
  unlock("a");
  expect(await Promise.all(locked)).toEqual([1, 2]);
});

test("at most four commits wait for locks, and the end of one lets the next commit begin", async () => {
  const { submit, begun, lock, unlock } = opened(OVERTAKING);
  const shops = ["a", "b", "c", "d", "e"];
  const submitted: Promise<number>[] = [];
  for (const [n, shop] of shops.entries()) {
    lock(shop);
    submitted.push(submit({ shop, n }));
    if (n < 4) await eventually(() => begun.length === n + 1);
  }
  await timersLaterThan(OVERTAKING.afterMs);
  expect(begun).toHaveLength(4);
  unlock("c");
  await eventually(() => begun.length === 5);
  expect(begun).toEqual(["a0", "b1", "c2", "d3", "e4"]);
  for (const shop of shops) unlock(shop);
  expect(await Promise.all(submitted)).toEqual([0, 1, 2, 3, 4]);
});
