import { CUSTOMERS_COUNT } from "../../../src/shopify/api/operations/customers.ts";
import type { ConnectedShop } from "../../support/connected.ts";
import type { Fault, FaultInfo } from "../../support/platform/faults.ts";

/** The operation of `count`. */
export const OPERATION = "CustomersCount";
/** The result of `count` in a shop without customers. */
export const RESULT = { customersCount: { count: 0 } };

/** Runs one of the program's own queries. */
export function count({ test, shop }: ConnectedShop) {
  return test.app.platform.client.query(shop.shop, CUSTOMERS_COUNT, {});
}

/** Fails the first requests of the operation. */
export function failFirst(requestCount: number, fault: Fault) {
  return ({ operation, n }: FaultInfo) => (operation === OPERATION && n <= requestCount ? fault : undefined);
}

/** How often the operation was requested. */
export function requestCount(all: ConnectedShop): number {
  return all.operations().filter((operation) => operation === OPERATION).length;
}

/**
 * Makes an answer of the platform. `cost` is what the platform reports about the query's cost and the shop's points.
 */
export function answer(body: object, cost?: object): Fault {
  return { status: 200, body: JSON.stringify(cost === undefined ? body : { ...body, extensions: { cost } }) };
}
