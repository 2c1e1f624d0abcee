import { describe, expect, test } from "bun:test";
import { parseRecordText } from "../../../src/domain/records/records.ts";
import { MemoryMirror } from "../../support/memory-mirror.ts";
import { processorMs } from "../../support/processor-time.ts";
import { line, order, reward, subscription } from "../../support/records.ts";

const KIB = 1024;
const LIMIT = 256 * KIB;

/** Makes line items whose titles have this many bytes in total. */
function lines(count: number, titleBytes: number, letter = "a") {
  const perTitle = Math.floor(titleBytes / Buffer.byteLength(letter) / count);
  const rest = titleBytes - perTitle * count * Buffer.byteLength(letter);
  return Array.from({ length: count }, (_, index) => ({
    ...line,
    title: letter.repeat(perTitle) + "a".repeat(Math.floor(rest / count) + (index < rest % count ? 1 : 0)),
  }));
}

function outcome(record: unknown): string {
  const parsed = parseRecordText(JSON.stringify(record));
  return "refused" in parsed ? `${parsed.refused.field}: ${parsed.refused.reason}` : "accepted";
}

/** Returns the size in bytes of the row that a commit writes for a subscription. */
function storedBytes(record: ReturnType<typeof subscription>): number {
  const parsed = parseRecordText(JSON.stringify(record));
  if ("refused" in parsed) throw new Error(parsed.refused.reason);
  const mirror = new MemoryMirror();
  mirror.commit([{ shop: mirror.shop, records: [parsed.record] }]);
  const row = [...mirror.rows.values()].find(({ kind }) => kind === "subscription");
  if (row?.kind !== "subscription") throw new Error("no subscription was written");
  return Buffer.byteLength(JSON.stringify(row.resource));
}

describe("a stored record may have 256 KiB", () => {
  test("a subscription, with titles in any script", () => {
    const withTitles = (titleBytes: number, letter = "a") =>
      subscription(1, {
        lines: lines(250, titleBytes, letter),
        cyclesCompleted: Number.MAX_SAFE_INTEGER,
        cancelledAt: "2026-01-01T00:00:00.000Z",
      });
    const largest = LIMIT - (storedBytes(withTitles(250)) - 250);
    for (const letter of ["a", "é", "\u{1f600}"]) {
      expect(storedBytes(withTitles(largest, letter))).toBe(LIMIT);
      expect([letter, outcome(withTitles(largest + 1, letter))]).toEqual([
        letter,
        "lines: makes the record larger than 256 KiB as stored",
      ]);
    }
  });

  test("an order", () => {
    expect(outcome(order(1, 1, { lines: lines(200, 200 * 1000) }))).toBe("accepted");
    expect(outcome(order(1, 1, { lines: lines(250, 250 * 1024) }))).toBe(
      "lines: makes the record larger than 256 KiB as stored",
    );
    expect(outcome(order(1, 1, { lines: lines(60, 60 * 1024, "\u0001") }))).toBe(
      "lines: makes the record larger than 256 KiB as stored",
    );
  });

  test("a reward: the refusal names its largest field", () => {
    const texts = (count: number) => Array.from({ length: count }, () => "a".repeat(1024));
    expect(outcome(reward("r", { small: texts(2), notes: texts(250) }))).toBe("accepted");
    expect(outcome(reward("r", { small: texts(2), notes: texts(255) }))).toBe(
      "notes: makes the record larger than 256 KiB as stored",
    );
  });
});

describe("a text that is too large or too deep is refused before it is parsed", () => {
  test.each([
    ["brackets", "[".repeat(5 << 20), ": is nested more than 16 levels deep"],
    ["objects in objects", '{"a":'.repeat(1 << 20), ": is nested more than 16 levels deep"],
    ["many fields", `{${Array.from({ length: 400_000 }, (_, n) => `"a${n}":1`)}}`, ": is larger than 256 KiB"],
    ["one long string", `"${"a".repeat(5 << 20)}"`, ": is larger than 256 KiB"],
    ["one long number", "1".repeat(5 << 20), ": is larger than 256 KiB"],
  ])("%s", async (_name, text, message) => {
    let parsed: ReturnType<typeof parseRecordText> | undefined;
    expect(
      await processorMs(() => {
        parsed = parseRecordText(text);
      }),
    ).toBeLessThan(200);
    expect(parsed !== undefined && "refused" in parsed && `${parsed.refused.field}: ${parsed.refused.reason}`).toBe(
      message,
    );
  });

  test("white space and escapes do not count", () => {
    const escaped = JSON.stringify(
      reward("r", { notes: Array.from({ length: 200 }, () => "a".repeat(1024)) }),
    ).replaceAll("a".repeat(1024), "\\u0061".repeat(1024));
    expect(escaped.length).toBeGreaterThan(1 << 20);
    expect(parseRecordText(escaped)).toHaveProperty("record");
    expect(parseRecordText(`{${" ".repeat(4 << 20)}${JSON.stringify(reward("r")).slice(1)}`)).toHaveProperty("record");
  });

  test("a record with many unknown fields is refused without a comparison of all fields", async () => {
    const fields = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`shopifyIc${n}`, 1]));
    const compare = () => expect(outcome({ type: "customer", ...fields })).toContain("is");
    expect(await processorMs(compare)).toBeLessThan(200);
  });
});

test("a text of exactly the maximum length is parsed", () => {
  const longest = JSON.stringify("a".repeat(288 * KIB - 2));
  const refusal = (text: string) => {
    const parsed = parseRecordText(text);
    return "refused" in parsed && parsed.refused.reason;
  };
  // This refusal comes after the text is parsed.
  expect(refusal(longest)).toBe("must be a JSON object");
  expect(refusal(` ${longest} `)).toBe("must be a JSON object");
  expect(refusal(`${longest}1`)).toBe("is larger than 256 KiB");
});
