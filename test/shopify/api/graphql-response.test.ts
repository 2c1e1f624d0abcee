import { describe, expect, test } from "bun:test";
import { readCost, readGraphqlData } from "../../../src/shopify/api/graphql-response.ts";
import type { JsonResponse } from "../../../src/shopify/api/post-json.ts";

function response(fields: Partial<JsonResponse> = {}): JsonResponse {
  return { status: 200, retryAfterMs: undefined, apiVersion: null, body: { data: {} }, ...fields };
}

function withErrors(...codes: (string | undefined)[]): JsonResponse {
  const errors = codes.map((code) => ({ message: `message of ${code}`, extensions: { code } }));
  return response({ body: { data: { shop: null }, errors } });
}

describe("an error response", () => {
  test.each<[string, JsonResponse, object]>([
    ["401", response({ status: 401 }), { reason: "unauthorized", status: 401, needsMerchant: true }],
    ["402", response({ status: 402 }), { reason: "unauthorized", status: 402, needsMerchant: true }],
    ["403", response({ status: 403 }), { reason: "unauthorized", status: 403, needsMerchant: true }],
    ["404", response({ status: 404 }), { reason: "unauthorized", status: 404, needsMerchant: true }],
    ["400", response({ status: 400 }), { reason: "refused", message: "the platform answered HTTP 400" }],
    ["429", response({ status: 429, retryAfterMs: 7 }), { reason: "unavailable", status: 429, retryAfterMs: 7 }],
    ["499", response({ status: 499 }), { reason: "refused" }],
    ["500", response({ status: 500, retryAfterMs: 8 }), { reason: "unavailable", status: 500, retryAfterMs: 8 }],
    ["204", response({ status: 204 }), { reason: "refused", message: "the platform answered HTTP 204" }],
    ["no JSON", response({ body: undefined }), { reason: "unavailable", message: "the platform's answer is not JSON" }],
    ["no data", response({ body: {} }), { reason: "refused", message: "the platform answered: no data" }],
    ["empty data", response({ body: { data: null } }), { reason: "refused" }],
    ["an error", withErrors(undefined), { reason: "refused", message: "the platform answered: message of undefined" }],
    ["denied data", withErrors("ACCESS_DENIED"), { reason: "unauthorized", status: 200, needsMerchant: false }],
    ["a defect", withErrors("INTERNAL_SERVER_ERROR"), { reason: "incomplete" }],
    ["a timeout", withErrors("ACCESS_DENIED", "TIMEOUT"), { reason: "incomplete" }],
    ["too few points", withErrors("ACCESS_DENIED", "THROTTLED"), { reason: "unavailable", retryAfterMs: 1000 }],
  ])("with %s says whether it may pass", (_title, answer, expected) => {
    expect(() => readGraphqlData(answer)).toThrow(expect.objectContaining({ name: "PlatformError", ...expected }));
  });

  test.each<[unknown, string]>([
    [null, "no message"],
    ["a text", "no message"],
    [{ message: {}, extensions: "x", path: "data" }, "[object Object]"],
    [{ message: "no", path: {}, extensions: { code: "ACCESS_DENIED" } }, "no"],
    [{ message: "no", path: [null, {}], extensions: null }, "no"],
  ])("with the malformed error %j is an answer of the platform", (error, message) => {
    for (const data of [null, { shop: null }])
      expect(() => readGraphqlData(response({ body: { data, errors: [error] } }))).toThrow(
        expect.objectContaining({ name: "PlatformError", message: `the platform answered: ${message}` }),
      );
  });

  test("has a message of bounded length", () => {
    const body = { errors: [{ message: "x".repeat(1000) }] };
    expect(() => readGraphqlData(response({ body }))).toThrow(
      expect.objectContaining({ message: `the platform answered: ${"x".repeat(300)}` }),
    );
    const obsolete = { code: "undefinedField", typeName: "T".repeat(1000), fieldName: "f" };
    const gone = response({ body: { errors: [{ message: "gone", extensions: obsolete }] } });
    expect(() => readGraphqlData(gone)).toThrow(`the platform no longer has ${"T".repeat(100)}, which this sds reads`);
  });
});

describe("a field without access", () => {
  const denied = (...path: (string | number)[]) => ({ message: "no", path, extensions: { code: "ACCESS_DENIED" } });

  test("is removed, or the ancestor nulled in its place", () => {
    const nodes = [
      { id: 1, firstName: null, defaultEmailAddress: null },
      { id: 2, firstName: "Ada", defaultEmailAddress: { emailAddress: "a@example.com" } },
    ];
    const errors = [
      denied("customers", "nodes", 0, "firstName"),
      denied("customers", "nodes", 0, "defaultEmailAddress", "emailAddress"),
    ];
    const { data, denied: first } = readGraphqlData(response({ body: { data: { customers: { nodes } }, errors } }));
    expect(data).toEqual({ customers: { nodes: [{ id: 1 }, nodes[1]] } });
    expect(first).toEqual({ name: "firstName", message: "no", level: undefined });
  });

  test("is an error if the mirror needs it", () => {
    const body = {
      data: { customer: { firstName: null } },
      errors: [denied("customer", "firstName"), denied("customer")],
    };
    expect(() => readGraphqlData(response({ body }))).toThrow(expect.objectContaining({ reason: "unauthorized" }));
  });

  test("is an error if there is another error beside it", () => {
    const other = { ...denied("customer", "firstName"), extensions: { code: "OTHER" } };
    const body = { data: { customer: { firstName: null } }, errors: [denied("customer", "firstName"), other] };
    expect(() => readGraphqlData(response({ body }))).toThrow("no");
  });

  test("is not reported for a complete response", () => {
    const data = { shop: { name: "alpha" } };
    expect(readGraphqlData(response({ body: { data } }))).toEqual({ data, denied: undefined });
  });
});

describe("the cost of a query", () => {
  const status = { maximumAvailable: 10, currentlyAvailable: 0, restoreRate: 1 };
  const costOf = (cost: unknown) => readCost(response({ body: { extensions: { cost } } }));

  test("is read with the points that the shop has", () => {
    const cost = { requestedQueryCost: 0, actualQueryCost: null, throttleStatus: status };
    expect(costOf(cost)).toEqual({ requestedQueryCost: 0, throttleStatus: status });
  });

  test.each([[{ ...status, restoreRate: null }], [{ ...status, currentlyAvailable: -1 }], [{}], [null], [undefined]])(
    "is read without points that make no sense: %j",
    (throttleStatus) => {
      expect(costOf({ requestedQueryCost: 3, throttleStatus })).toEqual({ requestedQueryCost: 3 });
    },
  );

  test.each([
    [undefined],
    [null],
    [{}],
    [{ requestedQueryCost: "3" }],
    [{ requestedQueryCost: -1, throttleStatus: status }],
  ])("is unknown for %j", (cost) => {
    expect(costOf(cost)).toBeUndefined();
  });

  test("is unknown for a response without it", () => {
    expect(readCost(response({ body: undefined }))).toBeUndefined();
    expect(readCost(response({ body: {} }))).toBeUndefined();
  });
});
