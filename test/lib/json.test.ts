import { expect, test } from "bun:test";
import fc from "fast-check";
import { asObject, parseExact, parseObject, splitJson } from "../../src/lib/json.ts";

function parts(text: string): string[] {
  return [...splitJson(text)];
}

/** Splits a text, and parses each part. @returns undefined if a part is not valid JSON */
function values(text: string): unknown[] | undefined {
  try {
    return parts(text).map((part) => JSON.parse(part) as unknown);
  } catch {
    return undefined;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

test.each<[string, string[]]>([
  ["", []],
  [" \n\r\n\t", []],
  ["[]", []],
  [" [ ] ", []],
  ["{}", ["{}"]],
  ['{\n "a": 1\n}\n', ['{\n "a": 1\n}']],
  ['{"a":1}\r\n\n{"b":2}', ['{"a":1}\r', '{"b":2}']],
  ['[{"a":"]}"},[1,2] , "x\\"," ,5]', ['{"a":"]}"}', "[1,2]", '"x\\","', "5"]],
  ['"text"', ['"text"']],
])("the parts of %j are %j", (text, expected) => {
  expect(parts(text)).toEqual(expected);
});

test.each([
  "[",
  "[1",
  "[1,",
  "[1,]",
  "[,1]",
  "[,]",
  "[1 2]",
  "[1]]",
  "[1]\n{}",
  "[1] x",
  "[}]",
  "[{]",
  '["a',
  '["a\\',
  "{",
  '{"a":',
  '{"a":1}\n{"b"',
  '{"a":1} x',
  "nonsense",
  "[[[[",
  "[1,2}",
])("%j has a part that is not valid JSON", (text) => {
  expect(values(text)).toBeUndefined();
});

test("any JSON array is split into its elements, with any white space", () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 1, "\r\n\t"), (array, indent) => {
      expect(values(JSON.stringify(array, null, indent))).toEqual(JSON.parse(JSON.stringify(array)));
    }),
  );
});

test("objects on a line each are split, and one object over several lines stays whole", () => {
  fc.assert(
    fc.property(fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { minLength: 1 }), (objects) => {
      const expected = JSON.parse(JSON.stringify(objects)) as unknown[];
      expect(values(objects.map((each) => JSON.stringify(each)).join("\n"))).toEqual(expected);
      expect(values(JSON.stringify(objects[0], null, 2))).toEqual(expected.slice(0, 1));
    }),
  );
});

test("a text that is not a JSON array has an invalid part, or is lines of JSON", () => {
  const broken = fc.array(fc.constantFrom(...'[]{},:"\\1a \n', "true", '"a"', '{"a":1}'), { maxLength: 12 });
  fc.assert(
    fc.property(broken, (characters) => {
      const text = characters.join("");
      const whole = parsed(text);
      if (Array.isArray(whole)) expect(values(text)).toEqual(whole);
      else if (text.trimStart().startsWith("[")) expect(values(text)).toBeUndefined();
      else if (whole !== undefined) expect(values(text)).toEqual([whole]);
    }),
    { numRuns: 20_000 },
  );
});

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
