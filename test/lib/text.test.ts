import { expect, test } from "bun:test";
import { memoize } from "../../src/lib/text.ts";

test("a result is computed once, until there are too many texts", () => {
  const computed: string[] = [];
  const length = memoize(2, (text) => {
    computed.push(text);
    return text.length;
  });
  expect(["a", "bb", "a", "bb"].map(length)).toEqual([1, 2, 1, 2]);
  expect(computed).toEqual(["a", "bb"]);
  expect(["ccc", "ccc", "a"].map(length)).toEqual([3, 3, 1]);
  expect(computed).toEqual(["a", "bb", "ccc", "a"]);
});
