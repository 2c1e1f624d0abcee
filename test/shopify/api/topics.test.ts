import { expect, test } from "bun:test";
import { priorityOf, WEBHOOK_TOPICS, waitOf } from "../../../src/shopify/api/topics.ts";

test.each([
  ["subscription_contracts/update", 3_000],
  ["subscription_billing_attempts/success", 3_000],
  ["subscription_billing_cycles/skip", 3_000],
  ["subscription_billing_attempts/failure", 0],
  ["subscription_billing_attempts/challenged", 0],
  ["orders/paid", 30_000],
  ["constructor", 0],
])("%s waits %d ms for others", (topic, expected) => {
  expect(waitOf(topic).waitMs).toBe(expected);
});

test("a webhook that needs no reading of a contract does not wait", () => {
  const others = Object.keys(WEBHOOK_TOPICS).filter((topic) => !/^(subscription_|orders\/)/.test(topic));
  expect([...others, "customers/redact", "shop/redact"].filter((topic) => waitOf(topic).waitMs > 0)).toEqual([]);
});

test.each([
  [["orders/paid", "orders/create"], "order"],
  [["orders/paid", "subscription_contracts/update"], "contract"],
  [["subscription_contracts/update", "subscription_billing_attempts/failure"], "attempt"],
  [["customers/merge"], "contract"],
  [["constructor"], "contract"],
] as const)("%j are as urgent as the most urgent of them: %s", (topics, expected) => {
  expect(priorityOf(topics)).toBe(expected);
});
