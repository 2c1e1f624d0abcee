import { expect, test } from "bun:test";
import { ShopSimulation } from "../../../src/cli/demo/shop-simulation.ts";
import { parseRecord } from "../../../src/domain/records/records.ts";
import { START } from "../../support/app.ts";

test("a demo begins with a declined charge, a reward, and the recovery of a declined charge", () => {
  const shop = new ShopSimulation(START);
  shop.past(40);
  expect([1, 2, 3].map((second) => shop.next(START + second * 1_000).title)).toEqual([
    expect.stringMatching(/^a renewal is declined \(/),
    expect.stringMatching(/^a \S+ reward is earned$/),
    "a failed renewal is recovered",
  ]);
});

test("every record of a demo is valid", () => {
  const shop = new ShopSimulation(START);
  const records = [...shop.past(100), ...[...Array(100).keys()].flatMap((n) => shop.next(START + n * 1_000).records)];
  expect(records.filter((record) => "refused" in parseRecord(record))).toEqual([]);
  expect(new Set(records.map(({ type }) => type)).size).toBe(5);
});

test("the past of a demo has several products, and customers with and without credits", () => {
  const past = new ShopSimulation(START).past(100);
  const titles = past.flatMap((record) =>
    record.type === "subscription" ? record.lines.map(({ title }) => title) : [],
  );
  const credits = past.flatMap((record) => (record.type === "customer" ? [record.creditsCents] : []));
  expect(new Set(titles).size).toBeGreaterThan(1);
  expect(new Set(credits)).toEqual(new Set([0, 500]));
});
