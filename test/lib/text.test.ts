import { expect, test } from "bun:test";
import { bytesText, memoize } from "../../src/lib/text.ts";

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

test.each([
  [0, "0 kB"],
  [999_999, "999 kB"],
  [1_000_000, "1.0 MB"],
  [999_900_000, "999.9 MB"],
  [1_000_000_000, "1.0 GB"],
  [71_680_600_000, "71.7 GB"],
])("a size of %d bytes is written as %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});
