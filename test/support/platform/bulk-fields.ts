import { GraphQLError } from "graphql";
import type { BulkOperation } from "./bulk-operations.ts";
import { listPage, type PageArguments } from "./connection.ts";
import type { Context, Fields } from "./context.ts";
import { utc } from "./timestamps.ts";

const ID = /^gid:\/\/shopify\/BulkOperation\/\d+$/;

function operationsPage(_: unknown, args: PageArguments, { shop, unknown }: Context) {
  const status = /^status:(\w+)$/i.exec(args.query ?? "")?.[1]?.toUpperCase();
  if (status === undefined && (args.query ?? "") !== "") unknown(`bulkOperations(query: ${args.query})`);
  const { bulk } = shop;
  const found = bulk.all
    .map((operation, index) => ({ ...operation, operation, index }))
    .filter(({ operation }) => status === undefined || bulk.statusOf(operation) === status);
  return listPage(found, args, ({ index }) => index);
}

export const BULK_QUERIES: Fields<unknown> = {
  bulkOperation: (_, { id }, { shop }) => {
    if (!ID.test(id)) throw new GraphQLError(`Invalid global id '${id}'`);
    return shop.bulk.find(id) ?? null;
  },
  bulkOperations: operationsPage,
  currentBulkOperation: (_, __, { shop }) => shop.bulk.all.at(-1) ?? null,
};

export const BULK_MUTATIONS: Fields<unknown> = {
  bulkOperationRunQuery: (_, { query, groupObjects }, { shop }) => shop.bulk.run(query, groupObjects),
  bulkOperationCancel: (_, { id }, { shop }) => shop.bulk.cancel(id),
};

const operation: Fields<BulkOperation> = {
  createdAt: ({ createdAt }) => utc(createdAt),
  completedAt: ({ status, completedAt }) => (status === "COMPLETED" ? utc(completedAt) : null),
  type: () => "QUERY",
  status: (row, _, { shop }) => shop.bulk.statusOf(row),
  // The platform writes these numbers as strings.
  objectCount: ({ objectCount }) => String(objectCount),
  rootObjectCount: ({ rootObjectCount }) => String(rootObjectCount),
  fileSize: ({ file, status }) => (file === null || status !== "COMPLETED" ? null : String(file.size)),
  // A result without objects has no file.
  url: (row, _, { shop }) => (row.objectCount === 0 ? null : shop.bulk.urlOf(row, "COMPLETED")),
  partialDataUrl: (row, _, { shop }) => (row.objectCount === 0 ? null : shop.bulk.urlOf(row, "FAILED")),
};

export const BULK_FIELDS: Record<string, Fields<never>> = { BulkOperation: operation };
