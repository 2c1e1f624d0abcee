import { expect, test } from "bun:test";
import { createRotation, createSlots } from "../../src/lib/slots.ts";

test("a limited amount of work runs at once, and the rest follows in order, even after a failure", async () => {
  const slots = createSlots(2);
  const log: string[] = [];
  const gates = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
  const all = gates.map(({ promise }, n) =>
    slots.run(async () => {
      log.push(`begin ${n}`);
      await promise;
      return n;
    }),
  );
  const settled = Promise.allSettled(all);
  await Promise.resolve();
  expect(log).toEqual(["begin 0", "begin 1"]);
  gates[1]?.reject(new Error("broken"));
  await expect(all[1]).rejects.toThrow("broken");
  gates[2]?.resolve();
  expect(await all[2]).toBe(2);
  for (const gate of gates) gate.resolve();
  expect((await settled).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  expect(log).toEqual(["begin 0", "begin 1", "begin 2", "begin 3"]);
});

function same(key: number): number {
  return key;
}

test("the first round has the given order", () => {
  expect(createRotation().order([1, 2, 3], same)).toEqual([1, 2, 3]);
});

test.each<[string, number, number[]]>([
  ["the first", 1, [2, 5, 9, 1]],
  ["one in the middle", 5, [9, 1, 2, 5]],
  ["the last", 9, [1, 2, 5, 9]],
  ["one that is not there now", 3, [5, 9, 1, 2]],
  ["one behind all others", 10, [1, 2, 5, 9]],
])("after %s is served, the round begins with the next key", (_name, served, order) => {
  const rotation = createRotation();
  rotation.noteServed(served);
  expect(rotation.order([1, 2, 5, 9], same)).toEqual(order);
});

test("items with the same key stay together, in their order", () => {
  const rotation = createRotation();
  rotation.noteServed(1);
  const items = [
    { shop: 1, name: "a" },
    { shop: 1, name: "b" },
    { shop: 2, name: "c" },
    { shop: 2, name: "d" },
  ];
  expect(rotation.order(items, ({ shop }) => shop).map(({ name }) => name)).toEqual(["c", "d", "a", "b"]);
});

test("without items the round is empty", () => {
  const rotation = createRotation();
  rotation.noteServed(1);
  expect(rotation.order([], same)).toEqual([]);
});

test("with one key served in each round, all keys are served equally often", () => {
  const rotation = createRotation();
  const served = Array.from({ length: 9 }, () => {
    const [next = 0] = rotation.order([2, 4, 6], same);
    rotation.noteServed(next);
    return next;
  });
  expect(served).toEqual([2, 4, 6, 2, 4, 6, 2, 4, 6]);
});
