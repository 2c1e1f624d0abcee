import { expect, test } from "bun:test";
import { customerId, orderId, randomId, subscriptionId } from "../../src/domain/ids.ts";

// These values are a promise: a mirror rebuilt by any later version has the same ids.
test("ids are computed from the shop's domain and the platform's identity", () => {
  expect(customerId("alpha.myshopify.com", "gid://shopify/Customer/1")).toBe("cus_oivueh3kt2qvat2k6dodcmai");
  expect(subscriptionId("alpha.myshopify.com", "gid://shopify/SubscriptionContract/1")).toBe(
    "sub_heq2se547nlrbk4fs6yawput",
  );
  expect(orderId("alpha.myshopify.com", "gid://shopify/SubscriptionContract/1", "recurring", 1)).toBe(
    "ord_ojjxwli3wmo63e2vi7p4hr6v",
  );
});

test("customers of two shops with the same number have different ids", () => {
  expect(customerId("beta.myshopify.com", "gid://shopify/Customer/1")).not.toBe(
    customerId("alpha.myshopify.com", "gid://shopify/Customer/1"),
  );
});

test("random ids have a prefix and 24 characters of base32", () => {
  expect(randomId("key_", (n) => new Uint8Array(n))).toBe("key_aaaaaaaaaaaaaaaaaaaaaaaa");
  expect(randomId("key_", (n) => new Uint8Array(n).fill(255))).toBe("key_777777777777777777777777");
});
