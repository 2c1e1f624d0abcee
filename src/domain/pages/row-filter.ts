import { customerId, subscriptionId } from "../ids.ts";
import { gidPattern, ORDER_STATUSES, type Resource, SUBSCRIPTION_STATUSES } from "../resources.ts";

/** Values that the rows of a list must have. Ids are internal. A row must have one of the statuses. */
export interface RowFilter {
  id?: string;
  orderGid?: string;
  customerId?: string;
  contractId?: string;
  statuses?: readonly string[];
}

/** Names a row by its id, or by the gid of an order. Several rows can have the same order gid. */
export type NamedRow = Pick<RowFilter, "id" | "orderGid">;

const INTERNAL_ID = {
  subscriptions: /^sub_[a-z2-7]{24}$/,
  customers: /^cus_[a-z2-7]{24}$/,
  orders: /^ord_[a-z2-7]{24}$/,
};
const GID = {
  subscriptions: new RegExp(gidPattern("SubscriptionContract")),
  customers: new RegExp(gidPattern("Customer")),
  orders: new RegExp(gidPattern("Order")),
};
/** The possible statuses of each resource. */
export const STATUSES = {
  subscriptions: SUBSCRIPTION_STATUSES,
  orders: ORDER_STATUSES,
  customers: [],
} as const satisfies Record<Resource, readonly string[]>;

/** The filters of each resource (docs/api.md, "Filters"). */
export const FILTERS = {
  subscriptions: ["shopifyId", "customerId", "status"],
  customers: ["shopifyId"],
  orders: ["shopifyId", "customerId", "contractId", "status"],
} as const;
export type FilterName = (typeof FILTERS)[Resource][number];

/** Returns the filter for the row of an internal id or a gid; undefined for any other text. */
export function namedRow(resource: Resource, text: string, domain: string): NamedRow | undefined {
  if (INTERNAL_ID[resource].test(text)) return { id: text };
  if (!GID[resource].test(text)) return undefined;
  switch (resource) {
    case "subscriptions":
      return { id: subscriptionId(domain, text) };
    case "customers":
      return { id: customerId(domain, text) };
    // The internal id of an order does not depend on its gid, because an order gets its gid only when it is charged.
    case "orders":
      return { orderGid: text };
  }
}

/** Whether a text is an internal id or a gid of a resource. */
export function isRowName(resource: Resource, text: string): boolean {
  return INTERNAL_ID[resource].test(text) || GID[resource].test(text);
}

/** Reads the value of a filter. @returns undefined for a value that no row of this resource can have */
export function readFilter(
  resource: Resource,
  name: Exclude<FilterName, "status">,
  text: string,
  domain: string,
): RowFilter | undefined {
  switch (name) {
    case "shopifyId":
      return namedRow(resource, text, domain);
    case "customerId":
      return filterById("customerId", namedRow("customers", text, domain)?.id);
    case "contractId":
      return filterById("contractId", namedRow("subscriptions", text, domain)?.id);
  }
}

function filterById(name: "customerId" | "contractId", id: string | undefined): RowFilter | undefined {
  return id === undefined ? undefined : { [name]: id };
}
