import { expect, test } from "bun:test";
import { parseTriggers, TRIGGER_HANDLES, TRIGGERS, triggerBody } from "../../../src/domain/events/trigger.ts";

test("a customer's number beyond a float stays exact", () => {
  const fields = { "Contract ID": 'gid://shopify/SubscriptionContract/"1"', Interval: "1 month" };
  expect(
    triggerBody({ handle: "subscription-created", customer: "gid://shopify/Customer/9007199254740993123", fields }),
  ).toBe(
    '{"handle":"subscription-created","payload":{"customer_id":9007199254740993123,"Contract ID":"gid://shopify/SubscriptionContract/\\"1\\"","Interval":"1 month"}}',
  );
});

test("handles and keys have the form that the platform accepts", () => {
  for (const handle of TRIGGER_HANDLES) {
    expect(handle).toMatch(/^[a-z0-9-]{1,30}$/);
    for (const key of Object.keys(TRIGGERS[handle].fields)) expect(key).toMatch(/^[A-Za-z ]+$/);
  }
});

test("triggers are chosen by handle, or all, or none", () => {
  expect(parseTriggers("all")).toEqual(TRIGGER_HANDLES);
  expect(parseTriggers("none")).toEqual([]);
  expect(parseTriggers("streak-milestone-reached, subscription-created")).toEqual([
    "subscription-created",
    "streak-milestone-reached",
  ]);
  expect(() => parseTriggers("subscription-create")).toThrow(
    '"subscription-create" is not a trigger: choose from subscription-created,',
  );
  expect(() => parseTriggers("")).toThrow("is not a trigger");
});
