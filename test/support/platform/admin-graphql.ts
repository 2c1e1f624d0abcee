import {
  type DocumentNode,
  execute,
  type FieldNode,
  type GraphQLError,
  getOperationAST,
  getVariableValues,
  parse,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
} from "graphql";
import { adminSchema, errorType, plainField, typeNameOf } from "./admin-schema.ts";
import type { Bucket } from "./bucket.ts";
import type { Context } from "./context.ts";
import { QueryCost } from "./query-cost.ts";
import type { PlatformShop } from "./shop.ts";

export interface GraphqlRequest {
  query: string;
  variables?: Record<string, unknown> | null;
  operationName?: string | null;
}

export type Outcome = "ok" | "invalid" | "denied" | "error" | "throttled" | "too costly";

export interface GraphqlAnswer {
  outcome: Outcome;
  /** Points that the query reserved. */
  cost: number;
  body: Record<string, unknown>;
}

interface Prepared {
  document?: DocumentNode;
  errors: readonly GraphQLError[];
}

const prepared = new Map<string, Prepared>();

/** Parses and validates each text once, because parsing and validating take longer than executing. */
function prepare(text: string): Prepared {
  let known = prepared.get(text);
  if (known === undefined) {
    try {
      const document = parse(text);
      known = { document, errors: validate(adminSchema(), document) };
    } catch (error) {
      known = { errors: [error as GraphQLError] };
    }
    if (prepared.size > 1000) prepared.clear();
    prepared.set(text, known);
  }
  return known;
}

/** An error for each selected field that is in `removed`, as from an API version without these fields. */
function removedFieldErrors(document: DocumentNode, removed: ReadonlySet<string>): object[] {
  const errors: object[] = [];
  if (removed.size === 0) return errors;
  const types = new TypeInfo(adminSchema());
  const enter = ({ name: { value: fieldName } }: FieldNode) => {
    const typeName = types.getParentType()?.name;
    if (!removed.has(`${typeName}.${fieldName}`)) return;
    const message = `Field '${fieldName}' doesn't exist on type '${typeName}'`;
    errors.push({ message, path: ["query", fieldName], extensions: { code: "undefinedField", typeName, fieldName } });
  };
  visit(document, visitWithTypeInfo(types, { Field: { enter } }));
  return errors;
}

/** The name of the operation, even if the query is invalid. */
export function operationName({ query, operationName: name }: GraphqlRequest): string {
  return name ?? /\b(?:query|mutation)\s+(\w+)/.exec(query)?.[1] ?? "unnamed";
}

export interface GraphqlCall {
  shop: PlatformShop;
  request: GraphqlRequest;
  raw: string;
  bucket: Bucket;
  maxQueryCost: number;
  handles: ReadonlySet<string>;
  removedFields: ReadonlySet<string>;
  unknown: (what: string) => void;
}

export async function answerGraphql(call: GraphqlCall): Promise<GraphqlAnswer> {
  const { shop, request, raw, bucket, handles } = call;
  const name = operationName(request);
  const unknown = (what: string) => call.unknown(`${name}: ${what}`);
  const { document, errors } = prepare(request.query);
  const operation = document === undefined ? null : getOperationAST(document, request.operationName);
  if (document === undefined || errors.length > 0 || !operation) {
    const messages = errors.length > 0 ? errors : [{ message: "An operation name is required" }];
    for (const { message } of messages) unknown(message);
    return { outcome: "invalid", cost: 0, body: { errors: messages } };
  }
  const removed = removedFieldErrors(document, call.removedFields);
  if (removed.length > 0) return { outcome: "invalid", cost: 0, body: { errors: removed } };
  const variables = request.variables ?? {};
  const { coerced, errors: variableErrors = [] } = getVariableValues(
    adminSchema(),
    operation.variableDefinitions ?? [],
    variables,
  );
  if (coerced === undefined) {
    for (const { message } of variableErrors) unknown(message);
    return { outcome: "invalid", cost: 0, body: { errors: variableErrors } };
  }
  const costs = new QueryCost(adminSchema(), document, coerced);
  const requested = costs.of(operation);
  const costOf = (actualQueryCost: number | null) => ({
    cost: { requestedQueryCost: requested, actualQueryCost, throttleStatus: bucket.status },
  });
  if (requested > call.maxQueryCost) {
    const message = `Query cost is ${requested}, which exceeds the single query max cost limit (${call.maxQueryCost}).`;
    const error = { message, extensions: { code: "MAX_COST_EXCEEDED", cost: requested, maxCost: call.maxQueryCost } };
    return { outcome: "too costly", cost: requested, body: { errors: [error], extensions: costOf(null) } };
  }
  if (!bucket.take(requested)) {
    const error = {
      message: "Throttled",
      extensions: { code: "THROTTLED", documentation: "https://shopify.dev/api/usage/rate-limits" },
    };
    return { outcome: "throttled", cost: requested, body: { errors: [error], extensions: costOf(null) } };
  }
  const contextValue: Context = { shop, unknown, handles, raw, errorType };
  const run = () =>
    execute({
      schema: adminSchema(),
      document,
      contextValue,
      variableValues: variables,
      operationName: request.operationName ?? null,
      fieldResolver: plainField,
      typeResolver: typeNameOf,
    });
  // `fromReplica` sets rows back to an earlier time while the query runs. This works because a query runs without a
  // pause: no other code can see these rows.
  const result = await (operation.operation === "query" ? shop.fromReplica(run) : run());
  const actual = Math.min(requested, costs.of(operation, result.data ?? null));
  bucket.giveBack(requested - actual);
  const codes = result.errors?.map(({ extensions }) => extensions["code"]) ?? [];
  for (const { message, extensions } of result.errors ?? []) if (extensions["code"] === undefined) unknown(message);
  const outcome = result.errors === undefined ? "ok" : codes.includes("ACCESS_DENIED") ? "denied" : "error";
  const body = { ...result, extensions: costOf(actual) };
  if (shop.errorPaths || !codes.includes("INTERNAL_SERVER_ERROR")) return { outcome, cost: requested, body };
  // Some defects of the platform replace the whole answer, and name no field.
  const defect = { message: "Internal error.", extensions: { code: "INTERNAL_SERVER_ERROR" } };
  return { outcome, cost: requested, body: { errors: [defect], extensions: costOf(actual) } };
}
