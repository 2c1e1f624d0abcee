import { expect, test } from "bun:test";
import { addField, type NewField } from "../../../src/domain/fields/definition.ts";
import { type FieldValue, parseValueText, valueRefusal } from "../../../src/domain/fields/value.ts";

const field = (type: NewField["type"]) => {
  const [made] = addField([], { key: "f", label: "F", type, ...(type === "choice" && { options: ["S", "M"] }) });
  if (made === undefined) throw new Error("no field");
  return made;
};

test.each<[NewField["type"], FieldValue[], FieldValue[]]>([
  ["text", ["", "x".repeat(1024), "🙂".repeat(1024)], [1, true, "x".repeat(1025), "a\0", "\ud83d"]],
  ["number", [0, -0, 1.5, 1e308, -1], ["1", true, Number.NaN, Number.POSITIVE_INFINITY]],
  ["boolean", [true, false], ["true", 0]],
  [
    "date",
    ["2026-01-31", "2024-02-29", "0001-01-01", "9999-12-31"],
    ["2026-02-30", "2026-2-3", "2026-01-31T00:00:00Z", "2025-02-29", "2026-13-01", "+2026-01-31", 20260131],
  ],
  ["choice", ["S"], ["s", "L", "", 1]],
])("a %s takes its own values, and refuses others", (type, right, wrong) => {
  expect(right.map((value) => valueRefusal(field(type), value))).toEqual(right.map(() => undefined));
  for (const value of wrong) expect(valueRefusal(field(type), value)).toStartWith("must be");
});

test.each<[NewField["type"], string, FieldValue | null]>([
  ["text", "12", "12"],
  ["number", "-1.5e3", -1500],
  ["number", "0x10", null],
  ["number", "", null],
  ["number", "Infinity", null],
  ["boolean", "true", true],
  ["boolean", "yes", null],
  ["date", "2026-01-31", "2026-01-31"],
  ["choice", "M", "M"],
  ["choice", "L", null],
])("a %s is read from %j", (type, text, expected) => {
  if (expected === null) expect(() => parseValueText(field(type), text)).toThrow("the value of f must be");
  else expect(parseValueText(field(type), text)).toBe(expected);
});
