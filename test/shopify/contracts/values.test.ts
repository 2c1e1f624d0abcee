import { expect, test } from "bun:test";
import { clipText } from "../../../src/shopify/contracts/values.ts";

test.each<[string, unknown, unknown]>([
  ["a short text", "House blend", "House blend"],
  ["a text of 1,025 characters", "x".repeat(1_025), "x".repeat(1_024)],
  ["a text that would be cut within a character", `${"x".repeat(1_023)}😀`, `${"x".repeat(1_023)}\ufffd`],
  ["U+0000 in a text", "A\0da\0", "Ada"],
  ["no text", null, null],
])("%s fits the mirror", (_name, value, expected) => {
  expect(clipText(value)).toBe(expected);
});
