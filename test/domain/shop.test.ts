import { expect, test } from "bun:test";
import { parseCreditTitle } from "../../src/domain/shop.ts";

test.each(["Store credit", "x".repeat(255)])("%p can be the title of the store credit", (title) => {
  expect(parseCreditTitle(title)).toBe(title);
});

test.each(["", "  ", "x".repeat(256), "a\0b", "\ud83d"])("%p cannot be the title of the store credit", (title) => {
  expect(() => parseCreditTitle(title)).toThrow("the title of the store credit must have 1 to 255 characters");
});
