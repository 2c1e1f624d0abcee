import { expect, test } from "bun:test";
import { requireShape } from "../../../src/shopify/contracts/shapes.ts";
import { customerRecord } from "../../../src/shopify/contracts/translate.ts";
import { answerWith, connected, withContract } from "../../support/connected.ts";
import { CONTRACT, CUSTOMER, contractNode, euros, ORDER, pageOfNodes } from "../../support/platform-nodes.ts";

const START = "2026-03-01T12:00:00Z";

function contract(fields: object) {
  return { nodes: [{ ...contractNode(), ...fields }] };
}

test.each<[string, string, unknown]>([
  ["no objects for their ids", "Nodes", { nodes: null }],
  ["a contract without lines", "Nodes", contract({ lines: null })],
  ["a contract without lines.nodes", "Nodes", contract({ lines: pageOfNodes(null) })],
  ["a contract without lines.nodes[0]", "Nodes", contract({ lines: pageOfNodes([null]) })],
  [
    "a contract without lines.nodes[0].currentPrice",
    "Nodes",
    contract({ lines: pageOfNodes([{ currentPrice: null }]) }),
  ],
  ["a contract without billingPolicy", "Nodes", contract({ billingPolicy: null })],
  ["a contract without id", "Nodes", contract({ id: null })],
  ["a contract without originOrder.id", "Nodes", contract({ originOrder: { id: [] } })],
  ["an invalid date: soon", "Nodes", contract({ updatedAt: "soon", customer: { id: CUSTOMER, updatedAt: START } })],
  ["a contract without customer", "Nodes", contract({ customer: "x" })],
  ["cycles without subscriptionBillingCycles", "BillingCycles", {}],
  [
    "cycles without subscriptionBillingCycles.nodes[0]",
    "BillingCycles",
    { subscriptionBillingCycles: pageOfNodes([null]) },
  ],
])("the platform sent %s: the contract waits in the inbox with this message", async (message, name, data) => {
  const { all } = await withContract();
  all.replaceAnswers(name, answerWith(data));
  await all.deliverAll();
  const waiting = (await all.inbox()).find(({ topic }) => topic.startsWith("subscription_contracts/"));
  expect(waiting?.error).toBe(`the platform sent ${message}`);
});

test("a contract with a missing part is left out of a load with one warning, and the others are loaded", async () => {
  const all = await connected();
  const good = {
    ...contractNode({ id: all.createContract() }),
    customer: { id: CUSTOMER, updatedAt: START },
    billingAttempts: pageOfNodes([]),
  };
  const bad = [
    { ...good, id: `${CONTRACT}1`, billingAttempts: null },
    { ...good, id: `${CONTRACT}2`, billingAttempts: pageOfNodes([{ state: null }]) },
    { ...good, id: `${CONTRACT}3`, createdAt: null },
  ];
  all.replaceAnswers("AllContracts", answerWith({ subscriptionContracts: pageOfNodes([...bad, good, null]) }));
  all.test.clock.ms += 60_000;
  const counts = await all.load();
  expect(counts).toMatchObject({ subscriptions: 1, skipped: 3 });
  const warnings = all.logged("a contract of the platform cannot be mirrored now");
  expect(warnings.map(({ error }) => error)).toEqual([
    "the platform sent a contract of a page without billingAttempts",
    "the platform sent a contract of a page without billingAttempts.nodes[0].state",
    "the platform sent an invalid date: null",
  ]);
});

test.each([[null], [5], [[]], ["x"]])("a customer that is %j is refused", (node) => {
  const refusal = { code: "bad_record", message: "the platform sent a customer without any data" };
  expect(() => customerRecord(node as never)).toThrow(expect.objectContaining(refusal));
});

test("an order needs its lines and their prices, and not what the app may not see", () => {
  const line = { originalUnitPriceSet: { shopMoney: euros("1.0") }, discountAllocations: [] };
  const order = (lines: unknown[]) => requireShape("an order", { id: ORDER, lineItems: pageOfNodes(lines) });
  expect(order([line, { ...line, contract: null }])).toBeDefined();
  for (const part of ["originalUnitPriceSet", "discountAllocations"]) {
    const message = `the platform sent an order without lineItems.nodes[0].${part}`;
    expect(() => order([{ ...line, [part]: null }])).toThrow(message);
  }
});

test("a further page of a deleted object is not checked for its shape", () => {
  expect(requireShape("attempts", undefined)).toBeUndefined();
  expect(() => requireShape("attempts", null)).toThrow("the platform sent attempts without any data");
});
