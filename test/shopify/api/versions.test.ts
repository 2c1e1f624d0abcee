import { describe, expect, test } from "bun:test";
import { type GraphQLSchema, parse, validate } from "graphql";
import * as app from "../../../src/shopify/api/operations/app.ts";
import * as attempts from "../../../src/shopify/api/operations/attempts.ts";
import * as bulk from "../../../src/shopify/api/operations/bulk.ts";
import * as contracts from "../../../src/shopify/api/operations/contracts.ts";
import * as customers from "../../../src/shopify/api/operations/customers.ts";
import * as cycles from "../../../src/shopify/api/operations/cycles.ts";
import * as orders from "../../../src/shopify/api/operations/orders.ts";
import { platformSchema } from "../../support/platform/admin-schema.ts";
import { API_VERSION } from "../../support/platform/webhook.ts";

// Loaded at import, because the time limit of a test does not apply to imports.
const SCHEMAS: [string, GraphQLSchema][] = [
  [API_VERSION, await platformSchema(API_VERSION)],
  ["2026-10", await platformSchema("2026-10")],
];

interface Query {
  name: string;
  text: string;
}

/** All queries by name, with those of bulk operations, and those for a list that contains a broken object. */
function allQueries(): [string, string][] {
  const operations = [app, attempts, bulk, contracts, customers, cycles, orders]
    .flatMap((file) => Object.values(file) as unknown[])
    .filter((each): each is Query & { gids?: Query; rows?: Query } => typeof each === "object" && each !== null)
    .filter(({ text }) => typeof text === "string")
    .flatMap((each) => [each, each.gids, each.rows])
    .flatMap((each): [string, string][] => (each === undefined ? [] : [[each.name, each.text]]));
  operations.push(["bulk customers", bulk.customersBulkQuery("name")]);
  operations.push(["bulk orders", bulk.ordersBulkQuery("name", "created_at:>='2026-01-01T00:00:00Z'")]);
  return operations;
}

describe.each(SCHEMAS)("version %s of the platform's API", (_version, schema) => {
  test.each(allQueries())("takes the query %s", (_name, text) => {
    expect(validate(schema, parse(text))).toEqual([]);
  });

  test("refuses a query for a field that does not exist", () => {
    expect(validate(schema, parse("{ shop { fieldThatDoesNotExist } }"))).toHaveLength(1);
  });
});

test("the operations are found", () => {
  expect(allQueries().length).toBeGreaterThan(27);
});
