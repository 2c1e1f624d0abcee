import { expect, test } from "bun:test";
import { parseOverlap, signingVersions } from "../../../src/domain/deliveries/signing-secret.ts";
import { START } from "../../support/app.ts";

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
