import { expect, test } from "bun:test";
import { missingScopes } from "../../../src/domain/platform/connection.ts";

test.each([
  [["read_own_subscription_contracts", "read_customers", "read_orders"], []],
  [["write_own_subscription_contracts", "write_customers", "read_all_orders"], []],
  [["read_customers"], ["read_own_subscription_contracts", "read_orders"]],
  [[], ["read_own_subscription_contracts", "read_customers", "read_orders"]],
])("of %j", (granted, missing) => {
  expect(missingScopes(granted)).toEqual(missing);
});
