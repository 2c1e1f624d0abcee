import { expect, test } from "bun:test";
import { planOf } from "../../src/domain/app-plan.ts";

test.each([
  [[["Pro", "ACTIVE"]], true, "pro"],
  [[["Free", "ACTIVE"]], true, "free"],
  [[["API and webhooks add-on", "ACTIVE"]], true, "free+addon"],
  [
    [
      ["Free", "ACTIVE"],
      ["API and webhooks", "ACTIVE"],
    ],
    true,
    "free+addon",
  ],
  [[["Pro", "CANCELLED"]], true, "free"],
  [[["Pro", "FROZEN"]], true, "pro"],
  [[], true, "free"],
  [[], false, undefined],
  [[["Platinum", "ACTIVE"]], true, undefined],
])("%j, subscribed ever: %p", (subscriptions, ever, plan) => {
  expect(
    planOf(
      subscriptions.map(([name = "", status = ""]) => ({ name, status })),
      ever,
    ),
  ).toBe(plan as ReturnType<typeof planOf>);
});
