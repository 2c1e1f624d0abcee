import {
  type ConstArgumentNode,
  type DocumentNode,
  execute,
  type FieldNode,
  GraphQLError,
  getNamedType,
  getNullableType,
  getOperationAST,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  parse,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
} from "graphql";
import { adminSchema, errorType, plainField, typeNameOf } from "./admin-schema.ts";
import type { BulkLine, BulkRefusal } from "./bulk-operations.ts";
import type { Context } from "./context.ts";
import type { PlatformShop } from "./shop.ts";

const MAX_CONNECTIONS = 5;
/** How deep connections may be nested below the root connection. */
const MAX_DEPTH = 2;
const PAGE_SIZE = 250;
/** Alias under which the stand-in reads `pageInfo`, to know whether a connection has a next page. */
const PAGE = "bulkPage";

/** @returns why the platform refuses to run a bulk query; undefined if the platform runs it */
export function refuseBulkQuery(text: string, refuses: readonly string[]): BulkRefusal | undefined {
  let document: DocumentNode;
  try {
    document = parse(text);
  } catch (error) {
    return { message: `Invalid bulk query: ${(error as Error).message}`, isMistake: true };
  }
  const [invalid] = validate(adminSchema(), document);
  if (invalid !== undefined) return { message: `Invalid bulk query: ${invalid.message}`, isMistake: true };
  const operation = getOperationAST(document);
  if (operation?.operation !== "query" || (operation.variableDefinitions ?? []).length > 0)
    return { message: "Invalid bulk query: it has to be one query without variables", isMistake: true };
  const message = brokenRule(document, refuses);
  return message === undefined ? undefined : { message, isMistake: false };
}

function brokenRule(document: DocumentNode, refuses: readonly string[]): string | undefined {
  const broken: string[] = [];
  const types = new TypeInfo(adminSchema());
  let connections = 0;
  let depth = 0;
  let lists = 0;
  visit(
    document,
    visitWithTypeInfo(types, {
      Field: {
        enter(field) {
          const type = getNamedType(types.getType());
          const parent = types.getParentType()?.name ?? "";
          if (parent === "QueryRoot" && /^nodes?$/.test(field.name.value))
            broken.push(`Bulk queries cannot use the top level field '${field.name.value}'`);
          if (parent.endsWith("Connection") && field.name.value === "nodes")
            broken.push("Bulk queries have to select edges and node, not nodes");
          if (isListField(types)) lists++;
          if (type?.name.endsWith("Connection") !== true) return;
          if (lists > 0) broken.push("Queries that contain a connection field within a list field are not supported.");
          connections++;
          depth++;
          if (depth > MAX_DEPTH + 1)
            broken.push(`Bulk queries cannot contain connections with a nesting depth greater than ${MAX_DEPTH}.`);
          const node = nodeType(type.name);
          if (node !== undefined && !isNode(node))
            broken.push(`Bulk queries need connections of objects with an id, which ${node} is not.`);
          if (node !== undefined && refuses.includes(node)) broken.push(`Bulk queries cannot contain ${node}.`);
          if (depth > 1 && field.loc !== undefined && !parentHasId(document, field))
            broken.push(
              `The parent 'node' field for a nested connection must select the 'id' field: ${field.name.value}`,
            );
        },
        leave() {
          if (isListField(types)) lists--;
          if (getNamedType(types.getType())?.name.endsWith("Connection") === true) depth--;
        },
      },
    }),
  );
  if (connections === 0) return "Bulk queries must contain at least one connection.";
  if (connections > MAX_CONNECTIONS) return `Bulk queries cannot contain more than ${MAX_CONNECTIONS} connections.`;
  return broken[0];
}

/** Whether the field is a list, other than the edges or nodes of a connection. */
function isListField(types: TypeInfo): boolean {
  const type = types.getType();
  return isListType(getNullableType(type)) && types.getParentType()?.name.endsWith("Connection") !== true;
}

/** Whether the query also selects the `id` of the node that has the connection. */
function parentHasId(document: DocumentNode, connection: FieldNode): boolean {
  let found = false;
  const nodes: FieldNode[] = [];
  visit(document, {
    Field: {
      enter(field) {
        if (field.name.value === "node") nodes.push(field);
        if (field !== connection) return;
        const selections = nodes.at(-1)?.selectionSet?.selections ?? [];
        found = selections.some((part) => part.kind === Kind.FIELD && part.name.value === "id" && !part.alias);
      },
      leave(field) {
        if (field.name.value === "node") nodes.pop();
      },
    },
  });
  return found;
}

function nodeType(connection: string): string | undefined {
  const type = adminSchema().getType(connection);
  const edges = isObjectType(type) ? getNamedType(type.getFields()["edges"]?.type) : undefined;
  return isObjectType(edges) ? getNamedType(edges.getFields()["node"]?.type)?.name : undefined;
}

function isNode(name: string): boolean {
  const type = adminSchema().getType(name);
  const node = adminSchema().getType("Node");
  return isObjectType(type) || isInterfaceType(type)
    ? isInterfaceType(node) && type.getInterfaces().includes(node)
    : false;
}

/** The lines of a bulk query: each node of its root connection, then the nodes below it. Reads page by page. */
export async function* bulkLines(
  shop: PlatformShop,
  text: string,
  unknown: (what: string) => void,
): AsyncGenerator<BulkLine[]> {
  const document = parse(text);
  const operation = getOperationAST(document);
  const contextValue: Context = { shop, unknown, handles: new Set(), raw: "", errorType };
  for (const root of operation?.selectionSet.selections ?? []) {
    if (operation === null || operation === undefined || root.kind !== Kind.FIELD)
      throw new GraphQLError("the stand-in has no fragments at the root of a bulk query");
    const key = root.alias?.value ?? root.name.value;
    let after: string | null = null;
    do {
      const paged = asPage(
        document,
        { ...operation, selectionSet: { ...operation.selectionSet, selections: [root] } },
        after,
      );
      const { data, errors } = await execute({
        schema: adminSchema(),
        document: paged,
        contextValue,
        fieldResolver: plainField,
        typeResolver: typeNameOf,
      });
      if (errors?.[0] !== undefined) throw errors[0];
      const page: unknown = data?.[key];
      if (!isConnection(page)) throw new GraphQLError("the stand-in has bulk queries over root connections only");
      for (const { node } of page.edges) yield linesOf(node, undefined, true);
      after = page[PAGE].hasNextPage ? page[PAGE].endCursor : null;
      // Between two pages, the stand-in can answer other requests.
      await new Promise((next) => setImmediate(next));
    } while (after !== null);
  }
}

/** Makes the query for one page of the root connection. Connections below the root are read whole. */
function asPage(document: DocumentNode, operation: OperationDefinitionNode, after: string | null): DocumentNode {
  const types = new TypeInfo(adminSchema());
  const whole: DocumentNode = {
    ...document,
    definitions: document.definitions.map((part) => (part.kind === Kind.OPERATION_DEFINITION ? operation : part)),
  };
  return visit(
    whole,
    visitWithTypeInfo(types, {
      Field(field) {
        if (field.name.value === "pageInfo" && field.alias?.value !== PAGE) return null;
        if (getNamedType(types.getType())?.name.endsWith("Connection") !== true) return undefined;
        const isRoot = types.getParentType()?.name === "QueryRoot";
        const kept = (field.arguments ?? []).filter(({ name }) => !/^(first|last|after|before)$/.test(name.value));
        const first = argument("first", { kind: Kind.INT, value: String(PAGE_SIZE) });
        const from = isRoot && after !== null ? [argument("after", { kind: Kind.STRING, value: after })] : [];
        const selections = [...(field.selectionSet?.selections ?? []), PAGE_FIELD];
        return {
          ...field,
          arguments: [...kept, first, ...from],
          selectionSet: { kind: Kind.SELECTION_SET, selections },
        };
      },
    }),
  );
}

const PAGE_FIELD: FieldNode = {
  kind: Kind.FIELD,
  alias: { kind: Kind.NAME, value: PAGE },
  name: { kind: Kind.NAME, value: "pageInfo" },
  selectionSet: {
    kind: Kind.SELECTION_SET,
    selections: ["hasNextPage", "endCursor"].map((value) => ({ kind: Kind.FIELD, name: { kind: Kind.NAME, value } })),
  },
};

function argument(name: string, value: ConstArgumentNode["value"]): ConstArgumentNode {
  return { kind: Kind.ARGUMENT, name: { kind: Kind.NAME, value: name }, value };
}

interface Page {
  edges: { node: Record<string, unknown> }[];
  [PAGE]: { hasNextPage: boolean; endCursor: string };
}

function isConnection(value: unknown): value is Page {
  return typeof value === "object" && value !== null && PAGE in value;
}

function linesOf(node: Record<string, unknown>, parentId: unknown, isRoot = false): BulkLine[] {
  const below: BulkLine[] = [];
  const id = node["id"];
  const strip = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(strip);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, part]) => {
        if (!isConnection(part)) return [[key, strip(part)]];
        if (part[PAGE].hasNextPage) throw new GraphQLError(`${key} of ${id} has more than ${PAGE_SIZE} nodes`);
        below.push(...part.edges.flatMap((edge) => linesOf(edge.node, id)));
        return [];
      }),
    );
  };
  const own = strip(node) as Record<string, unknown>;
  const text = JSON.stringify(parentId === undefined ? own : { ...own, __parentId: parentId });
  return [{ text, isRoot }, ...below];
}
