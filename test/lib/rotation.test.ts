import { expect, test } from "bun:test";
import { createRotation } from "../../src/lib/rotation.ts";

function same(key: number): number {
  return key;
}

test("before anything is served, the order stays as it is", () => {
  expect(createRotation().order([1, 2, 3], same)).toEqual([1, 2, 3]);
});

test.each<[string, number, number[]]>([
  ["the first", 1, [2, 5, 9, 1]],
  ["one in the middle", 5, [9, 1, 2, 5]],
  ["the last", 9, [1, 2, 5, 9]],
  ["one that is not there now", 3, [5, 9, 1, 2]],
  ["one behind all others", 10, [1, 2, 5, 9]],
])("after %s is served, the round begins with the next one", (_name, served, order) => {
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

test("if one is served each round, all are served equally often", () => {
  const rotation = createRotation();
  const served = Array.from({ length: 9 }, () => {
    const [next = 0] = rotation.order([2, 4, 6], same);
    rotation.noteServed(next);
    return next;
  });
  expect(served).toEqual([2, 4, 6, 2, 4, 6, 2, 4, 6]);
});
