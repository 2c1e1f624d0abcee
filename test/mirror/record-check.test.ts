import { expect, test } from "bun:test";
import type { IncomingRecord } from "../../src/domain/records/record-schemas.ts";
import { createSlices } from "../../src/lib/turns.ts";
import { checkBody } from "../../src/mirror/record-check.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../support/records.ts";

const shop = { id: 1, domain: "alpha.myshopify.com" };
/** A mirror with contract 1. Notes what is looked up. */
const asked: string[][] = [];
const mirror = {
  async knownContracts(_shop: unknown, gids: readonly string[]) {
    asked.push([...gids]);
    return new Set(gids.filter((each) => each === gid.contract(1)));
  },
};

function check(records: readonly unknown[]) {
  return checkBody(JSON.stringify(records), shop, mirror, createSlices());
}

const many = (count: number) => Array.from({ length: count }, (_, n) => customer(n + 1));

test("250 records of a body stay records, and one more makes parts of all, in their order", async () => {
  expect(await check(many(250))).toEqual({ accepted: 250, records: many(250) });
  const checked = await check(many(251));
  if (!("parts" in checked)) throw new Error("no parts");
  expect(checked.accepted).toBe(251);
  expect(checked.parts.flatMap((part) => JSON.parse(part) as IncomingRecord[])).toEqual(many(251));
});

test("a part has 25 records and 32 KiB at most, but for a record that is larger itself", async () => {
  const large = Array.from({ length: 10 }, (_, n) => reward(`r${n}`, { notes: new Array(60).fill("a".repeat(1000)) }));
  const checked = await check([...large, ...many(300)]);
  if (!("parts" in checked)) throw new Error("no parts");
  const sizes = checked.parts.map((part) => (JSON.parse(part) as unknown[]).length);
  expect(sizes.slice(0, 10)).toEqual(new Array(10).fill(1));
  expect(Math.max(...sizes)).toBe(25);
  expect(checked.parts.filter((part) => part.length > 64 * 1024)).toEqual([]);
});

test("records that become parts may name contracts of the mirror, and of records before them", async () => {
  const records = [
    ...many(300),
    order(1, 1),
    subscription(2),
    order(2, 1),
    cancelFlow("c", { subscription: gid.contract(2) }),
  ];
  expect(await check(records)).toMatchObject({ accepted: 304 });
  expect(asked.at(-1)).toEqual([gid.contract(1)]);
});

test.each([
  ["an unknown contract", order(7, 1), 300],
  ["a contract that only comes after it", order(8, 1), 300],
  ["an unknown contract in a cancellation flow", cancelFlow("c", { subscription: gid.contract(9) }), 300],
])("a record that names %s is refused by its index", async (_name, record, index) => {
  const checked = await check([...many(300), record, subscription(8), order(1, 1)]);
  expect(checked).toMatchObject({ refused: { index, field: "subscription" } });
});

test("the first bad record is named, and nothing after it is read", async () => {
  const began = performance.now();
  const text = `${JSON.stringify(customer(1))}\n${"x\n".repeat(2_000_000)}`;
  expect(await checkBody(text, shop, mirror, createSlices())).toMatchObject({ refused: { index: 1 } });
  expect(performance.now() - began).toBeLessThan(1_000);
});

test("the event loop turns while a large body is checked", async () => {
  let longestMs = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - last);
    last = performance.now();
  }, 1);
  expect(await check(many(60_000))).toMatchObject({ accepted: 60_000 });
  clearInterval(timer);
  // Before, it was held for half a second.
  expect(longestMs).toBeLessThan(150);
});
