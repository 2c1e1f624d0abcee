import { expect, test } from "bun:test";
import { explainTrouble } from "../../../src/domain/platform/connection-trouble.ts";
import { troubleOfStatus, troubleOfTokenRequest } from "../../../src/shopify/api/trouble.ts";

const STATUSES = [301, 401, 402, 403, 404, 423, 430];

test("each trouble becomes a sentence and an advice, without commands of a shell and without status codes", () => {
  const troubles = [
    ...STATUSES.map((status) => troubleOfStatus({ status }) ?? ""),
    troubleOfTokenRequest({ status: 400 }, "invalid_grant", "refresh token"),
    troubleOfTokenRequest({ status: 400 }, "invalid_client", "client secret"),
    "the shop does not grant read_orders, read_customers",
    "a text of an earlier version",
  ];
  const texts = troubles.map(explainTrouble);
  for (const { what, todo } of texts) {
    expect(what).toMatch(/^[A-Z].*\.$/);
    expect(todo).toMatch(/^[A-Z].*\.$/);
    expect(what + todo).not.toMatch(/`|sds|HTTP|token/);
  }
  expect(texts.at(-2)?.what).toBe("The shop does not allow the app to use read_orders, read_customers.");
  expect(new Set(texts.map(({ what }) => what)).size).toBe(STATUSES.length + 1);
});
