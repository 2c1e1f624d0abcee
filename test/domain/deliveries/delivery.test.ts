import { expect, test } from "bun:test";
import {
  afterAttempt,
  afterRetryByHand,
  type DeliveryState,
  envelope,
  keptAnswer,
  parseOverlap,
  signingVersions,
  timeoutError,
} from "../../../src/domain/deliveries/delivery.ts";
import { START } from "../../support/app.ts";

const MINUTE = 60_000;
const WAITS = [2, 4, 8, 16].map((minutes) => minutes * MINUTE);
const FAILURE = { statusCode: 500, error: "The endpoint responded with HTTP 500." };
const SUCCESS = { statusCode: 204, error: null };

/** The table of docs/webhooks.md, "Retries", row by row. */
test.each<[DeliveryState["status"], number, typeof FAILURE | typeof SUCCESS, DeliveryState["status"], number | null]>([
  ["pending", 0, SUCCESS, "delivered", null],
  ["pending", 0, FAILURE, "retrying", 2],
  ["retrying", 1, SUCCESS, "delivered", null],
  ["retrying", 1, FAILURE, "retrying", 4],
  ["retrying", 2, FAILURE, "retrying", 8],
  ["retrying", 3, FAILURE, "retrying", 16],
  ["retrying", 4, FAILURE, "dead", null],
  ["retrying", 4, SUCCESS, "delivered", null],
])("%s after %i attempts, %p: %s, next in %p minutes", (_before, attempts, outcome, next, minutes) => {
  const after = afterAttempt({ attempts, round: attempts }, outcome, 1_000, WAITS);
  expect(after).toEqual({
    status: next,
    attempts: attempts + 1,
    round: attempts + 1,
    nextAttemptAt: minutes === null ? null : 1_000 + minutes * MINUTE,
  });
});

test("failing attempts are made at 0, 2, 6, 14 and 30 minutes, and then the delivery is dead", () => {
  const made: number[] = [];
  let state: DeliveryState = { status: "pending", attempts: 0, round: 0, nextAttemptAt: 0 };
  while (state.nextAttemptAt !== null) {
    made.push(state.nextAttemptAt / MINUTE);
    state = afterAttempt(state, FAILURE, state.nextAttemptAt, WAITS);
  }
  expect({ made, status: state.status }).toEqual({ made: [0, 2, 6, 14, 30], status: "dead" });
});

test.each<[DeliveryState, DeliveryState]>([
  [
    { status: "dead", attempts: 5, round: 5, nextAttemptAt: null },
    { status: "pending", attempts: 5, round: 0, nextAttemptAt: 9 },
  ],
  [
    { status: "delivered", attempts: 2, round: 2, nextAttemptAt: null },
    { status: "pending", attempts: 2, round: 0, nextAttemptAt: 9 },
  ],
  [
    { status: "retrying", attempts: 3, round: 3, nextAttemptAt: 500 },
    { status: "retrying", attempts: 3, round: 3, nextAttemptAt: 9 },
  ],
])("by hand, %p becomes %p", (before, after) => {
  expect(afterRetryByHand(before, 9)).toEqual(after);
});

test("the body has the envelope's keys in their order", () => {
  expect(envelope("whd_1", { topic: "order.charged", data: { b: 1, a: 2 } }, 0, "alpha.myshopify.com")).toBe(
    '{"id":"whd_1","topic":"order.charged","created_at":"1970-01-01T00:00:00.000Z","shop":"alpha.myshopify.com","data":{"b":1,"a":2}}',
  );
});

test.each([
  [10_000, "The endpoint did not answer within 10 seconds."],
  [1_000, "The endpoint did not answer within 1 second."],
  [500, "The endpoint did not answer within 0.5 seconds."],
])("a timeout of %i ms in words", (timeout, text) => {
  expect(timeoutError(timeout)).toBe(text);
});

test.each<[string, string, string]>([
  ["text", '{"ok":true}\r\n', '{"ok":true}\r\n'],
  ["nothing", "", ""],
  ["UTF-8", "\xef\xbb\xbf\xc3\xa4\xf0\x9f\x98\x80", "\ufeffä😀"],
  ["no UTF-8", "a\xff\xc3(", "a\ufffd\ufffd("],
  ["an end in the middle of a character", "a\xe2\x82", "a\ufffd"],
  ["a NUL and other control characters", "\x00\x1b[2J\x7f", "\ufffd\u001b[2J\u007f"],
  ["1,024 bytes", "x".repeat(1024), "x".repeat(1024)],
  ["more", "x".repeat(5_000), "x".repeat(1024)],
  ["a character that the limit cuts", `${"x".repeat(1022)}\xe2\x82\xac`, "x".repeat(1022)],
  ["a longer one", `${"x".repeat(1021)}\xf0\x9f\x98\x80`, "x".repeat(1021)],
  ["a character that ends at the limit", `${"x".repeat(1021)}\xe2\x82\xac`, `${"x".repeat(1021)}€`],
  ["bytes that take more room as text", "\xff".repeat(1024), "\ufffd".repeat(341)],
])("an attempt keeps at most 1,024 bytes of the answer: %s", (_name, bytes, expected) => {
  expect(keptAnswer(Buffer.from(bytes, "latin1"))).toBe(expected);
});

test.each([
  ["a shop without a secret", { version: null, overlapEndsAt: null }, []],
  ["the first secret", { version: 1, overlapEndsAt: null }, [1]],
  ["a rotation without overlap", { version: 3, overlapEndsAt: null }, [3]],
  ["the last millisecond of an overlap", { version: 3, overlapEndsAt: START + 1 }, [3, 2]],
  ["the end of an overlap", { version: 3, overlapEndsAt: START }, [3]],
])("%s: the versions that sign, newest first", (_what, newest, versions) => {
  expect(signingVersions(newest, START)).toEqual(versions);
});

test.each([
  ["1s", 1_000],
  ["90m", 5_400_000],
  ["24h", 86_400_000],
  ["30d", 2_592_000_000],
])("an overlap of %s is %d ms", (text, overlapMs) => {
  expect(parseOverlap(text)).toBe(overlapMs);
});

test.each(["", "0s", "999ms", "31d", "2592001s", "24", "-1h", "1.5h", "24 h", "1h30m", "1w", "forever"])(
  "an overlap of %j is refused",
  (text) => {
    expect(() => parseOverlap(text)).toThrow(
      `the overlap is "${text}": it must be a duration from 1s to 30d, like 24h`,
    );
  },
);
