import { expect, test } from "bun:test";
import { checkAccess, noAccess, requireAccess } from "../../src/actions/access.ts";
import { MERCHANT, OPERATOR } from "../support/actors.ts";

const NO_WEBHOOKS =
  "this shop's plan has no webhooks: they come with the Pro plan, and with the Free plan through the API and webhooks add-on";

test.each([
  [
    "API access",
    "this shop's plan has no API access: it comes with the Pro plan, and with the Free plan through the API and webhooks add-on",
  ],
  ["webhooks", NO_WEBHOOKS],
] as const)("a plan without %s says which plans have it", (feature, words) => {
  expect(noAccess(feature)).toBe(words);
});

test.each(["pro", "free+addon"] as const)("the plan %s includes everything, for merchants and operators", (plan) => {
  expect(() => requireAccess({ plan }, "webhooks")).not.toThrow();
  for (const actor of [MERCHANT, OPERATOR]) expect(checkAccess({ plan }, "webhooks", actor)).toEqual([]);
});

test("on a plan without access a merchant is refused, and the operator gets a warning with the same words", () => {
  const refusal = expect.objectContaining({ code: "plan_required", message: NO_WEBHOOKS });
  expect(() => requireAccess({ plan: "free" }, "webhooks")).toThrow(refusal);
  expect(() => checkAccess({ plan: "free" }, "webhooks", MERCHANT)).toThrow(refusal);
  expect(checkAccess({ plan: "free" }, "webhooks", OPERATOR)).toEqual([NO_WEBHOOKS]);
});
