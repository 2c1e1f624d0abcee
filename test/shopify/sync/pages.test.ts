import { expect, test } from "bun:test";
import type { GraphqlClient } from "../../../src/shopify/api/graphql-client.ts";
import { ALL_CUSTOMERS } from "../../../src/shopify/api/operations/customers.ts";
import { readPages } from "../../../src/shopify/sync/pages.ts";

test("an endless row of empty pages is refused", async () => {
  let asked = 0;
  const client = {
    async query() {
      asked += 1;
      return { customers: { nodes: [], pageInfo: { hasNextPage: true, endCursor: String(asked) } } };
    },
  } as unknown as GraphqlClient;
  const shop = { id: 1, domain: "alpha.myshopify.com" };
  const pages = readPages(client, shop, ALL_CUSTOMERS, "customers", {}, () => 0);
  await expect(Array.fromAsync(pages)).rejects.toThrow("the platform's empty pages do not end");
  expect(asked).toBe(101);
});
