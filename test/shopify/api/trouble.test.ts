import { expect, test } from "bun:test";
import { needsNewTokens, troubleOfStatus, troubleOfTokenRequest } from "../../../src/shopify/api/trouble.ts";

test.each([
  [301, false],
  [401, true],
  [402, false],
  [403, false],
  [404, false],
  [423, false],
  [430, false],
])("new tokens help a shop that answers %d: %p", (status, helps) => {
  const trouble = troubleOfStatus({ status, movedTo: "beta.myshopify.com" }) ?? "";
  expect(needsNewTokens(trouble)).toBe(helps);
  expect(needsNewTokens(troubleOfTokenRequest({ status }, undefined, "refresh token"))).toBe(helps);
});

test.each(["refresh token", "unended refresh token", "client secret", "app key"] as const)(
  "new tokens help a shop whose %s is refused",
  (credential) => {
    expect(needsNewTokens(troubleOfTokenRequest({ status: 400 }, "invalid_grant", credential))).toBe(true);
  },
);
