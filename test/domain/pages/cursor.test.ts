import { expect, test } from "bun:test";
import fc from "fast-check";
import { customerId } from "../../../src/domain/ids.ts";
import { formatCursor, parseCursor } from "../../../src/domain/pages/cursor.ts";

test("is <ISO date>~<id>", () => {
  expect(formatCursor({ at: Date.parse("2026-01-02T03:04:05.678Z"), id: "sub_x" })).toBe(
    "2026-01-02T03:04:05.678Z~sub_x",
  );
});

test("a formatted cursor is read back", () => {
  const positions = fc.record({
    at: fc.integer({ min: 0, max: 253_402_300_799_999 }),
    id: fc.string().map((text) => customerId("a.example", text)),
  });
  fc.assert(
    fc.property(positions, (position) => {
      expect(parseCursor(formatCursor(position))).toEqual(position);
    }),
  );
});

const id = "sub_abcdefghijklmnopqrstuvwx";
test.each([
  "",
  "~",
  id,
  `~${id}`,
  "2026-01-01T00:00:00.000Z",
  "2026-01-01T00:00:00.000Z~",
  `2026-01-01T00:00:00Z~${id}`,
  `2026-02-30T00:00:00.000Z~${id}`,
  `2026-01-01T00:00:00.000+00:00~${id}`,
  `2026-01-01T00:00:00.000Z ${id}`,
  `2026-01-01T00:00:00.000Z~${id} `,
  `2026-01-01T00:00:00.000Z~${id}~${id}`,
  `2026-01-01T00:00:00.000Z~${id.toUpperCase()}`,
])("%p is not a cursor", (text) => {
  expect(parseCursor(text)).toBeUndefined();
});
