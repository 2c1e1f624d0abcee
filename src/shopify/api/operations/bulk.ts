import { CUSTOMER_FIELDS } from "./customers.ts";
import { type NoVariables, operation } from "./operation.ts";
import { ORDER_BULK_FIELDS } from "./orders.ts";

export interface BulkOperationNode {
  id: string;
  status: string;
  errorCode: string | null;
  /** The number of root objects so far. All sizes and counts of bulk operations are strings. */
  rootObjectCount: string;
  fileSize: string | null;
  /** null before the file is ready, and for a result without objects. */
  url: string | null;
}

const BULK_FIELDS = "id status errorCode rootObjectCount fileSize url";

interface RunData {
  bulkOperationRunQuery: {
    bulkOperation: BulkOperationNode | null;
    userErrors: { code: string | null; message: string }[];
  };
}

export const RUN_BULK_QUERY = operation<{ query: string }, RunData>(
  `mutation RunBulkQuery($query: String!) { bulkOperationRunQuery(query: $query) {
    bulkOperation { ${BULK_FIELDS} } userErrors { code message } } }`,
);

export const BULK_OPERATION = operation<{ id: string }, { bulkOperation: BulkOperationNode | null }>(
  `query BulkOperation($id: ID!) { bulkOperation(id: $id) { ${BULK_FIELDS} } }`,
);

/** Lists the newest operations of the app. Fewer than ten run at once, so the list contains all running ones. */
export const RECENT_BULK_OPERATIONS = operation<
  NoVariables,
  { bulkOperations: { nodes: { id: string; status: string; query: string }[] } }
>(
  `query RecentBulkOperations {
    bulkOperations(first: 10, sortKey: CREATED_AT, reverse: true) { nodes { id status query } } }`,
);

export const CANCEL_BULK_OPERATION = operation<
  { id: string },
  { bulkOperationCancel: { bulkOperation: { status: string } | null } }
>("mutation CancelBulkOperation($id: ID!) { bulkOperationCancel(id: $id) { bulkOperation { status } } }");

/** Returns the bulk query for all customers. @param name a GraphQL name that no other run uses */
export function customersBulkQuery(name: string): string {
  return oneLine(`query ${name} { customers { edges { node { ${CUSTOMER_FIELDS} } } } }`);
}

/** Returns the bulk query for orders with lines. @param filter in the platform's search syntax, without quotes (") */
export function ordersBulkQuery(name: string, filter: string): string {
  return oneLine(`query ${name} { orders(query: "${filter}") { edges { node { ${ORDER_BULK_FIELDS} } } } }`);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
