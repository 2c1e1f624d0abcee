import { expect, test } from "bun:test";
import { settledItems } from "../../../src/shopify/api/batches.ts";
import { PlatformError } from "../../../src/shopify/api/platform-error.ts";

const DATA = { orders: { nodes: ["first", null, "third"] } };

function errorAt(...path: (string | number)[]) {
  const error = new PlatformError("incomplete", "INTERNAL_SERVER_ERROR");
  return new PlatformError("incomplete", "a part failed", { partial: { data: DATA, errors: [{ path, error }] } });
}

test("an error in an item of the list is that item's result", () => {
  expect(settledItems(errorAt("orders", "nodes", 1, "name"), "orders", "nodes")).toMatchObject([
    { status: "fulfilled", value: "first" },
    { status: "rejected", reason: { message: "INTERNAL_SERVER_ERROR" } },
    { status: "fulfilled", value: "third" },
  ]);
});

test.each([
  ["in another list", ["customers", "nodes", 1]],
  ["in another part of the list", ["orders", "edges", 1]],
  ["in the list as a whole", ["orders", "nodes"]],
])("settledItems returns undefined for an error %s", (_where, path) => {
  expect(settledItems(errorAt(...path), "orders", "nodes")).toBeUndefined();
});
