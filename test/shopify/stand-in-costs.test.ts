import { expect, test } from "bun:test";
import { getOperationAST, getVariableValues, parse } from "graphql";
import { adminSchema } from "../support/platform/admin-schema.ts";
import { pageWeight, QueryCost } from "../support/platform/query-cost.ts";
import recorded from "../support/platform/recorded-costs.json";

/** Costs that the model does not explain: store credit accounts and one large query of a customer. */
const UNEXPLAINED = ["CustomerHydrate", "StoreCreditAccountReadbackParity"];

function costs(query: string, variables: Record<string, unknown> = {}) {
  const document = parse(query);
  const operation = getOperationAST(document);
  if (!operation) throw new Error("there is no operation");
  const { coerced } = getVariableValues(adminSchema(), operation.variableDefinitions ?? [], variables);
  const cost = new QueryCost(adminSchema(), document, coerced ?? variables);
  return {
    requested: cost.of(operation),
    actual: (data: Record<string, unknown> | null) => cost.of(operation, data),
  };
}

test("the model gives the recorded requested costs", () => {
  const modelled = recorded.map(({ query, variables, requested }) => ({
    name: /query (\w+)/.exec(query)?.[1],
    requested,
    model: costs(query, variables).requested,
  }));
  const wrong = modelled.filter(({ requested, model }) => model !== requested);
  const far = wrong.filter(({ requested, model }) => Math.abs(requested - model) > Math.max(1, requested / 10));
  expect(recorded).toHaveLength(125);
  expect(wrong.map(({ name }) => name).sort()).toEqual(UNEXPLAINED);
  expect(far.map(({ name }) => name).sort()).toEqual(UNEXPLAINED);
});

test("the weight of a page grows far more slowly than its size", () => {
  expect([0, 1, 2, 3, 5, 10, 20, 50, 100, 250].map(pageWeight)).toEqual([0, 1, 1, 2, 3, 4, 5, 7, 9, 11]);
});

test("nodes by id count once, whatever the number of ids, as the most expensive type", () => {
  const query = `query Some($ids: [ID!]!) { nodes(ids: $ids) { id ... on Customer { defaultEmailAddress { emailAddress } }
    ... on Order { customer { id } lineItems(first: 10) { nodes { id contract { id } } } } } }`;
  const ids = Array.from({ length: 250 }, (_, n) => `gid://shopify/Order/${n}`);
  // 12 points: 1 for the node, 1 for the customer, 2 + 4 × 2 for the connection.
  expect(costs(query, { ids: ids.slice(0, 1) }).requested).toBe(12);
  expect(costs(query, { ids }).requested).toBe(12);
  const order = (lines: number) => ({
    id: "o",
    customer: { id: "c" },
    lineItems: { nodes: Array.from({ length: lines }, () => ({ id: "l", contract: { id: "k" } })) },
  });
  expect(costs(query, { ids }).actual({ nodes: [order(1), { id: "c", defaultEmailAddress: null }] })).toBe(6);
  expect(costs(query, { ids }).actual({ nodes: [order(1), order(5)] })).toBe(10);
  expect(costs(query, { ids }).actual({ nodes: [null, null] })).toBe(1);
});

test("the actual cost is that of the returned nodes", () => {
  // Each line has a query, data, the requested cost and the actual cost. A comment says which lines were recorded at
  // the platform.
  const metafields = (first: number) => `{ product(id: "p") { id a: metafield(key: "a") { id } b: metafield(key: "b")
    { id } c: metafield(key: "c") { id } metafields(first: ${first}) { nodes { id } pageInfo { endCursor } } } }`;
  const one = { id: "m" };
  const product = { id: "p", a: one, b: one, c: one, metafields: { nodes: [one, one, one], pageInfo: {} } };
  const customers = "{ customers(first: 5) { edges { cursor node { id } } pageInfo { hasNextPage } } }";
  const rows: [string, Record<string, unknown>, number, number][] = [
    // Recorded.
    [metafields(10), { product }, 10, 8],
    [customers, { customers: { edges: [], pageInfo: {} } }, 5, 2],
    ['{ customer(id: "c") { id defaultEmailAddress { emailAddress } } }', { customer: null }, 2, 1],
    // Not recorded: `QueryCost` assumes the mean cost of the returned nodes.
    [
      "{ orders(first: 50) { nodes { id customer { id } lineItems(first: 5) { nodes { id } } } } }",
      { orders: { nodes: [{ id: "o", customer: { id: "c" }, lineItems: { nodes: [one] } }] } },
      51,
      7,
    ],
    ["{ ordersCount { count } }", { ordersCount: { count: 3 } }, 10, 10],
    ["{ orders(first: 1) { nodes { totalPriceSet { shopMoney { amount } } } } }", { orders: { nodes: [] } }, 3, 2],
  ];
  for (const [query, data, requested, actual] of rows) {
    const cost = costs(query);
    expect([query, cost.requested, cost.actual(data)]).toEqual([query, requested, actual]);
  }
});

test("a mutation costs 10 points", () => {
  const flow = 'mutation { flowTriggerReceive(handle: "x", payload: {}) { userErrors { field message } } }';
  expect(costs(flow).requested).toBe(10);
});
