import { expect, test } from "bun:test";
import { ShopSimulation } from "../../../src/cli/demo/shop-simulation.ts";
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
