import { describe, expect, test } from "bun:test";
import { createBatchSizes } from "../../../src/shopify/api/batches.ts";
import type { GraphqlClient } from "../../../src/shopify/api/graphql-client.ts";
import { ALL_CONTRACTS, CHANGED_CONTRACTS } from "../../../src/shopify/api/operations/contracts.ts";
import { ALL_CUSTOMERS } from "../../../src/shopify/api/operations/customers.ts";
import type { ListOperation } from "../../../src/shopify/api/operations/operation.ts";
import { type ReadPage, readPages } from "../../../src/shopify/sync/pages.ts";
import { connected } from "../../support/connected.ts";

const shop = { id: 1, domain: "alpha.myshopify.com" };

function sourceOf(client: GraphqlClient, now: () => number) {
  return { client, now, sizes: createBatchSizes() };
}

test("endless empty pages are refused", async () => {
  let asked = 0;
  const client = {
    async query() {
      asked += 1;
      return { customers: { nodes: [], pageInfo: { hasNextPage: true, endCursor: String(asked) } } };
    },
  } as unknown as GraphqlClient;
  const pages = readPages(
    sourceOf(client, () => 0),
    shop,
    ALL_CUSTOMERS,
    {},
  );
  await expect(Array.fromAsync(pages)).rejects.toThrow("the platform's empty pages do not end");
  expect(asked).toBe(101);
});

test("the request time of a page is before its answer, even if our clock was ahead until then", async () => {
  const times = [3_600_000, 5_000];
  const page = { nodes: [], pageInfo: { hasNextPage: false, endCursor: null } };
  const client = { query: async () => ({ customers: page }) } as unknown as GraphqlClient;
  const pages = readPages(
    sourceOf(client, () => times.shift() ?? 0),
    shop,
    ALL_CUSTOMERS,
    {},
  );
  expect(await Array.fromAsync(pages)).toMatchObject([{ requestedAt: 5_000 }]);
});

describe("a list that the platform ends after 25,000 rows", () => {
  async function large() {
    const all = await connected();
    all.remote.seed({ contracts: 26_000 });
    all.remote.maxRows = 25_000;
    const { client, now } = all.test.app.platform;
    const read = (list: ListOperation<{ id: string }>, start: Parameters<typeof readPages>[3] = {}) =>
      readPages({ client, now, sizes: createBatchSizes() }, all.shop.shop, list, start);
    return { all, read };
  }

  const ids = (pages: ReadPage<{ id: string }>[]) => pages.flatMap(({ nodes }) => nodes.map(({ id }) => id));

  test("is read on: contracts by their changes, customers by their ids", async () => {
    const { all, read } = await large();
    for (const [kind, list] of [
      ["contract", CHANGED_CONTRACTS],
      ["customer", ALL_CUSTOMERS],
    ] as const) {
      const found = ids(await Array.fromAsync(read(list)));
      expect(found).toHaveLength(26_000);
      expect(new Set(found)).toEqual(new Set(all.remote.ids(kind)));
    }
  });

  test("is read on after an interruption, without a row twice", async () => {
    const { all, read } = await large();
    const before: ReadPage<{ id: string }>[] = [];
    for await (const page of read(CHANGED_CONTRACTS)) {
      before.push(page);
      if (before.length === 90) break;
    }
    const last = before.at(-1);
    const after = await Array.fromAsync(read(CHANGED_CONTRACTS, { after: last?.endCursor ?? null, list: last?.list }));
    const found = ids([...before, ...after]);
    expect(found).toHaveLength(26_000);
    expect(new Set(found)).toEqual(new Set(all.remote.ids("contract")));
  });

  test("by a filter for what was created since the last row, for a load", () => {
    const node = { id: "gid://shopify/SubscriptionContract/1", createdAt: "2026-01-01T00:00:00Z" };
    expect(ALL_CONTRACTS.filterFrom(node as Parameters<typeof ALL_CONTRACTS.filterFrom>[0])).toBe(
      "created_at:>='2026-01-01T00:00:00Z'",
    );
  });
});
