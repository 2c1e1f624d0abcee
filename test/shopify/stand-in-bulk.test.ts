import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import type { BulkBehaviour } from "../support/platform/bulk-operations.ts";
import { oneContract, started } from "./stand-in-started.ts";

const RUN = `mutation Run($query: String!, $groupObjects: Boolean!) {
  bulkOperationRunQuery(query: $query, groupObjects: $groupObjects) {
    bulkOperation { id status url } userErrors { field message code } } }`;
const POLL = `query Poll($id: ID!) { bulkOperation(id: $id) { status errorCode createdAt completedAt objectCount
  rootObjectCount fileSize url partialDataUrl type query } }`;
const CANCEL = `mutation Cancel($id: ID!) { bulkOperationCancel(id: $id) { bulkOperation { status }
  userErrors { field message } } }`;
const ORDERS = "{ orders { edges { node { id name customer { id } lineItems { edges { node { id title } } } } } } }";

const LINES = "lines { edges { node { id } } }";
const FULFILLED = "fulfillmentLineItems { edges { node { id } } }";

interface Polled {
  status: string;
  url: string | null;
  partialDataUrl: string | null;
  fileSize: string | null;
  objectCount: string;
}
type Line = Record<string, unknown> & { id: string; __parentId?: string };

async function bulk(behaviour: Partial<BulkBehaviour> = { delayMs: null }) {
  const all = await started();
  all.shop.setBulk(behaviour);
  const start = async (query: string, groupObjects = false) => {
    const answer = await all.query(RUN, { query, groupObjects });
    expect(answer.extensions?.cost.actualQueryCost).toBe(10);
    return (answer.data as { bulkOperationRunQuery: { bulkOperation: { id: string }; userErrors: unknown[] } })
      .bulkOperationRunQuery;
  };
  const poll = async (id: string) => {
    const { data, extensions } = await all.query(POLL, { id });
    expect(extensions?.cost).toMatchObject({ requestedQueryCost: 1, actualQueryCost: 1 });
    return (data as { bulkOperation: Polled }).bulkOperation;
  };
  const lines = async (url: string | null): Promise<Line[]> => {
    const text = (await (await fetch(url ?? "")).text()).trimEnd();
    return text.split("\n").map((line) => JSON.parse(line));
  };
  const whole = async (query: string, groupObjects = false) => {
    const { bulkOperation } = await start(query, groupObjects);
    await all.shop.finishBulkOperations();
    const polled = await poll(bulkOperation.id);
    return { ...polled, lines: await lines(polled.url) };
  };
  return { ...all, start, poll, lines, whole };
}

test("a bulk query runs in the background, and its result has each object on a line", async () => {
  const { shop, standIn, start, poll, lines } = await bulk();
  shop.seed({ contracts: 300, renewals: 1 });
  const { bulkOperation, userErrors } = await start(ORDERS);
  expect(userErrors).toEqual([]);
  expect(bulkOperation).toMatchObject({ status: "CREATED", url: null });
  expect(await poll(bulkOperation.id)).toMatchObject({
    status: "CREATED",
    completedAt: null,
    fileSize: null,
    url: null,
  });
  await shop.finishBulkOperations();
  const done = await poll(bulkOperation.id);
  expect(done).toMatchObject({ status: "COMPLETED", objectCount: "1800", rootObjectCount: "600", errorCode: null });
  expect([done, JSON.parse(shop.outgoing.at(-1)?.body ?? "{}")]).toMatchObject([
    { type: "QUERY", query: ORDERS, completedAt: "2026-03-01T12:00:00Z", partialDataUrl: null },
    { admin_graphql_api_id: bulkOperation.id, status: "completed", error_code: null, type: "query" },
  ]);
  const all = await lines(done.url);
  expect(all).toHaveLength(1800);
  const orders = new Set(shop.ids("order"));
  for (const line of all) {
    if (orders.delete(line.id)) expect(Object.keys(line)).toEqual(["id", "name", "customer"]);
    else
      expect([Object.keys(line), line["__parentId"]]).toEqual([
        ["id", "title", "__parentId"],
        expect.stringContaining("/Order/"),
      ]);
  }
  expect(orders.size).toBe(0);
  expect(done.fileSize).toBe(String((await (await fetch(done.url ?? "")).text()).length));
  expect(standIn.invalid).toEqual([]);
});

test("only grouped objects come right after their parent", async () => {
  const { shop, whole } = await bulk();
  shop.seed({ contracts: 50, renewals: 1 });
  const following = (lines: Line[]) => {
    const seen = new Set<string>();
    let direct = 0;
    let early = 0;
    for (const [index, { id, __parentId: parent }] of lines.entries()) {
      seen.add(id);
      if (parent === undefined) continue;
      const before = lines[index - 1];
      direct += before?.id === parent || before?.__parentId === parent ? 1 : 0;
      early += seen.has(parent) ? 0 : 1;
    }
    return { direct, early };
  };
  const grouped = await whole(ORDERS, true);
  expect(following(grouped.lines)).toEqual({ direct: 200, early: 0 });
  const shuffled = await whole(ORDERS);
  expect(following(shuffled.lines).direct).toBeLessThan(50);
  expect(following(shuffled.lines).early).toBeGreaterThan(20);
  const ids = (lines: Line[]) => lines.map(({ id }) => id).sort();
  expect(ids(shuffled.lines)).toEqual(ids(grouped.lines));
});

test("contracts with attempts and customers can be read in bulk, with conditions", async () => {
  const { clock, shop, whole } = await bulk();
  const old = oneContract(shop);
  clock.ms += 86_400_000;
  const id = oneContract(shop);
  shop.failAttempt(shop.startAttempt(id, 1));
  const query = `{ subscriptionContracts(query: "created_at:>=2026-03-02T00:00:00Z") { edges { node { id status
    customer { id defaultEmailAddress { emailAddress } }
    attempts: billingAttempts { edges { node { id completedAt state { __typename } } } } } } } }`;
  const { lines } = await whole(query);
  const sorted = lines.toSorted((a, b) => Number(a.__parentId !== undefined) - Number(b.__parentId !== undefined));
  expect(sorted).toMatchObject([
    { id, status: "ACTIVE", customer: { defaultEmailAddress: { emailAddress: "ada@example.com" } } },
    { __parentId: id, state: { __typename: "SubscriptionBillingAttemptFailedState" } },
  ]);
  expect(old).not.toBe(id);
});

test("a result without objects has no file", async () => {
  const { shop, start, poll } = await bulk();
  const { bulkOperation } = await start(ORDERS);
  await shop.finishBulkOperations();
  expect(await poll(bulkOperation.id)).toMatchObject({ status: "COMPLETED", objectCount: "0", url: null });
});

test("queries that the platform does not run in bulk are user errors", async () => {
  const { shop, standIn, start } = await bulk();
  shop.setBulk({ refuses: ["Customer"] });
  const deep = (levels: number): string =>
    levels === 0
      ? "lineItems { edges { node { id } } }"
      : `customer { id orders { edges { node { id ${deep(levels - 1)} } } } }`;
  const many = (count: number) =>
    `{ orders { edges { node { id ${Array.from({ length: count - 1 }, (_, n) => `l${n}: lineItems { edges { node { id } } }`).join(" ")} } } } }`;
  const refused: [message: string, query: string][] = [
    ["at least one connection", "{ shop { id } }"],
    ["edges and node, not nodes", "{ orders { nodes { id } } }"],
    ["top level field 'node'", '{ node(id: "x") { id ... on Order { lineItems { edges { node { id } } } } } }'],
    ["more than 5 connections", many(6)],
    ["nesting depth greater than 2", `{ orders { edges { node { id ${deep(2)} } } } }`],
    ["which SubscriptionLine is not", `{ subscriptionContracts { edges { node { id ${LINES} } } } }`],
    ["must select the 'id' field", "{ orders { edges { node { name lineItems { edges { node { id } } } } } } }"],
    ["cannot contain Customer", "{ customers { edges { node { id } } } }"],
    ["within a list field", `{ orders { edges { node { id fulfillments { id ${FULFILLED} } } } } }`],
  ];
  for (const [message, query] of refused) {
    const { bulkOperation, userErrors } = await start(query);
    expect(bulkOperation).toBeNull();
    expect(userErrors).toEqual([{ field: ["query"], code: "INVALID", message: expect.stringContaining(message) }]);
  }
  expect(standIn.invalid).toEqual([]);
  for (const query of [many(5), `{ orders { edges { node { id ${deep(1)} } } } }`])
    expect((await start(query)).userErrors).toEqual([]);
  expect((await start("{ nothing { edges { node { id } } } }")).userErrors).toMatchObject([{ code: "INVALID" }]);
  expect(standIn.invalid).toEqual([expect.stringContaining("Invalid bulk query")]);
});

test("five operations run at once, and each can be canceled", async () => {
  const { shop, query, start, poll, read } = await bulk();
  const ids: string[] = [];
  for (let n = 0; n < 5; n++) ids.push((await start(ORDERS)).bulkOperation.id);
  expect((await start(ORDERS)).userErrors).toMatchObject([{ code: "LIMIT_REACHED" }]);
  const [id = ""] = ids;
  expect(await read(CANCEL, { id })).toMatchObject({ bulkOperation: { status: "CANCELING" }, userErrors: [] });
  await shop.finishBulkOperations();
  expect(await poll(id)).toMatchObject({ status: "CANCELED", url: null, completedAt: null });
  expect((await query(CANCEL, { id })).data).toMatchObject({ bulkOperationCancel: { userErrors: [{ field: null }] } });
  const listed = await query(`{ bulkOperations(first: 2, reverse: true) { nodes { id } }
    done: bulkOperations(first: 5, query: "status:completed") { nodes { id } } }`);
  expect(listed.data).toMatchObject({
    bulkOperations: { nodes: [{ id: ids[4] }, { id: ids[3] }] },
    done: { nodes: ids.slice(1).map((each) => ({ id: each })) },
  });
  shop.setBulk({ limit: 1 });
  await start(ORDERS);
  expect((await start(ORDERS)).userErrors).toMatchObject([{ code: "OPERATION_IN_PROGRESS" }]);
});

test("an operation that runs is canceled once, and leaves no result", async () => {
  const { shop, start, poll, read } = await bulk({ delayMs: 0, shuffledLines: 0 });
  shop.seed({ contracts: 6_000 });
  const { id } = (await start(ORDERS)).bulkOperation;
  await eventually(async () => Number((await poll(id)).objectCount) > 0);
  shop.bulk.cancel(id);
  const canceled = shop.finishBulkOperations();
  expect(await read(CANCEL, { id })).toMatchObject({
    bulkOperation: { status: expect.stringMatching(/^CANCEL(ING|ED)$/) },
  });
  await canceled;
  // The second operation takes longer than the rest of the first operation. So a late result of the first operation
  // would show below.
  await start(ORDERS);
  await shop.finishBulkOperations();
  expect(await poll(id)).toMatchObject({ status: "CANCELED", url: null });
  const ended = shop.outgoing.map(({ body }) => JSON.parse(body).status);
  expect(ended).toEqual(["canceled", "completed"]);
});

test("an operation can fail with partial data, or be denied", async () => {
  const { shop, start, poll, lines } = await bulk();
  shop.seed({ contracts: 20 });
  shop.setBulk({ failure: { errorCode: "TIMEOUT", afterLines: 7 } });
  const { bulkOperation } = await start(ORDERS);
  await shop.finishBulkOperations();
  const failed = await poll(bulkOperation.id);
  expect(failed).toMatchObject({ status: "FAILED", errorCode: "TIMEOUT", url: null, fileSize: null, objectCount: "7" });
  expect(await lines(failed.partialDataUrl)).toHaveLength(7);
  expect(shop.outgoing.at(-1)?.body).toContain('"error_code":"timeout","status":"failed"');
  shop.setBulk({ failure: null });
  shop.scopes = ["read_customers"];
  const denied = await start(ORDERS);
  await shop.finishBulkOperations();
  expect(await poll(denied.bulkOperation.id)).toMatchObject({ errorCode: "ACCESS_DENIED", partialDataUrl: null });
});

test("without the test's help an operation runs after its delay", async () => {
  const { shop, start, poll } = await bulk({ delayMs: 1 });
  shop.seed({ contracts: 1 });
  const { bulkOperation } = await start(ORDERS);
  await eventually(async () => (await poll(bulkOperation.id)).status === "COMPLETED");
});
