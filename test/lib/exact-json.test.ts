import { expect, test } from "bun:test";
import { asObject, parseExact, parseObject } from "../../src/lib/exact-json.ts";

test.each([
  ["9007199254740991", 9_007_199_254_740_991],
  ["9007199254740993", "9007199254740993"],
  ["706405506930370084", "706405506930370084"],
  ["-9007199254740993", -9_007_199_254_740_992],
  ["1e30", 1e30],
  ["0.1", 0.1],
  ['"9007199254740993"', "9007199254740993"],
  ["null", null],
])("%s is parsed as %p", (json, value) => {
  expect(parseExact(`{"id":${json},"in":[{"id":${json}}]}`)).toEqual({ id: value, in: [{ id: value }] });
});

test.each(["", "{", "[]", "null", "7", '"text"'])("%j is not a JSON object", (text) => {
  expect(parseExact(text)).toBeUndefined();
  expect(parseObject(text)).toBeUndefined();
});

test("parseObject rounds large numbers like JSON.parse", () => {
  expect(parseObject('{"id":9007199254740993}')).toEqual({ id: 9_007_199_254_740_992 });
});

test.each([[[]], [null], [undefined], ["text"], [7]])("%p is not an object", (value) => {
  expect(asObject(value)).toBeUndefined();
});
