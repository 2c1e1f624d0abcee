import { listOperation, type NoVariables, operation } from "./operation.ts";

export interface CustomerNode {
  id: string;
  // Optional fields are absent if the app has no access to them.
  firstName?: string | null;
  lastName?: string | null;
  updatedAt: string;
  defaultEmailAddress?: { emailAddress: string; marketingState: string; marketingUpdatedAt: string | null } | null;
}

export const CUSTOMER_FIELDS = `id firstName lastName updatedAt
  defaultEmailAddress { emailAddress marketingState marketingUpdatedAt }`;

/** Lists customers, sorted by the time of their last change. */
export const CUSTOMERS = listOperation<CustomerNode>("Customers", "customers", "UPDATED_AT", CUSTOMER_FIELDS);

/** Lists customers, sorted by id. Changes do not move a customer in this list. */
export const ALL_CUSTOMERS = listOperation<CustomerNode>("AllCustomers", "customers", "ID", CUSTOMER_FIELDS);

export const CUSTOMER_BY_ID = operation<{ id: string }, { customer: CustomerNode | null }>(
  `query Customer($id: ID!) { customer(id: $id) { ${CUSTOMER_FIELDS} } }`,
);

export const CUSTOMERS_COUNT = operation<NoVariables, { customersCount: { count: number } | null }>(
  "query CustomersCount { customersCount(limit: null) { count } }",
);
