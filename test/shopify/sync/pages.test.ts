import { expect, test } from "bun:test";
import type { GraphqlClient } from "../../../src/shopify/api/graphql-client.ts";
import { ALL_CUSTOMERS } from "../../../src/shopify/api/operations/customers.ts";
import { readPages } from "../../../src/shopify/sync/pages.ts";

const shop = { id: 1, domain: "alpha.myshopify.com" };

test("endless empty pages are refused", async () => {
  let asked = 0;
  const client = {
    async query() {
      asked += 1;
      return { customers: { nodes: [], pageInfo: { hasNextPage: true, endCursor: String(asked) } } };
    },
  } as unknown as GraphqlClient;
  const pages = readPages(client, shop, ALL_CUSTOMERS, {}, () => 0);
  await expect(Array.fromAsync(pages)).rejects.toThrow("the platform's empty pages do not end");
  expect(asked).toBe(101);
});

test("the request time of a page is before its answer, even if our clock was ahead until then", async () => {
  const times = [3_600_000, 5_000];
  const page = { nodes: [], pageInfo: { hasNextPage: false, endCursor: null } };
  const client = { query: async () => ({ customers: page }) } as unknown as GraphqlClient;
  const pages = readPages(client, shop, ALL_CUSTOMERS, {}, () => times.shift() ?? 0);
  expect(await Array.fromAsync(pages)).toMatchObject([{ requestedAt: 5_000 }]);
});
