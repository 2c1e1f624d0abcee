import { describe, expect, test } from "bun:test";
import { planOf } from "../../../src/domain/platform/app-plan.ts";
import type { Plan } from "../../../src/domain/shop.ts";

describe("the plan of a shop", () => {
  test.each<[string, [name: string, status: string][], Plan | undefined]>([
    ["follows the subscription's name", [["Pro", "ACTIVE"]], "pro"],
    ["may be free", [["Free", "ACTIVE"]], "free"],
    ["may have the add-on", [["API and webhooks add-on", "ACTIVE"]], "free+addon"],
    ["may have the add-on by the full name", [["Free + API and webhooks", "ACTIVE"]], "free+addon"],
    [
      "is the best of several",
      [
        ["Free", "ACTIVE"],
        ["API and webhooks", "ACTIVE"],
      ],
      "free+addon",
    ],
    ["is free once all subscriptions have ended", [["Pro", "CANCELLED"]], "free"],
    [
      "stays while a bill is unpaid, whatever ended before",
      [
        ["Pro", "FROZEN"],
        ["Free", "EXPIRED"],
      ],
      "pro",
    ],
    ["is not decided by the platform without any subscription", [], undefined],
    ["is not decided by a plan that sds does not know", [["Platinum", "ACTIVE"]], undefined],
  ])("%s", (_title, subscriptions, plan) => {
    expect(planOf(subscriptions.map(([name, status]) => ({ name, handle: null, status })))).toBe(plan);
  });

  test("follows the handle, because the platform translates the name", () => {
    expect(planOf([{ name: "Professionell", handle: "pro", status: "ACTIVE" }])).toBe("pro");
    expect(planOf([{ name: "Pro", handle: "platinum", status: "ACTIVE" }])).toBeUndefined();
  });
});
