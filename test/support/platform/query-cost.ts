import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  GraphQLIncludeDirective,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getArgumentValues,
  getDirectiveValues,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  isUnionType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";

type Data = Readonly<Record<string, unknown>>;
type Fields = Map<string, { field: GraphQLField<unknown, unknown>; nodes: FieldNode[] }>;

const MUTATION_COST = 10;
const CONNECTION_COST = 2;

/**
 * The cost of an operation by the rules of the platform. A scalar costs nothing, an object 1, a connection 2 plus its
 * nodes, and a mutation 10. Of several possible types the most expensive one counts. Without `data` this is the
 * requested cost, and with it the actual cost.
 */
export class QueryCost {
  private readonly schema: GraphQLSchema;
  private readonly variables: Readonly<Record<string, unknown>>;
  private readonly fragments = new Map<string, FragmentDefinitionNode>();

  constructor(schema: GraphQLSchema, document: DocumentNode, variables: Readonly<Record<string, unknown>>) {
    this.schema = schema;
    this.variables = variables;
    for (const part of document.definitions)
      if (part.kind === Kind.FRAGMENT_DEFINITION) this.fragments.set(part.name.value, part);
  }

  of(operation: OperationDefinitionNode, data?: Data | null): number {
    if (data === null) return 0;
    const type = this.schema.getRootType(operation.operation);
    if (operation.operation !== "query") return MUTATION_COST * operation.selectionSet.selections.length;
    return type ? this.selection(type, [operation.selectionSet], data) : 0;
  }

  private selection(type: GraphQLCompositeType, sets: readonly SelectionSetNode[], data: Data | undefined): number {
    if (!isAbstractType(type)) return this.fields(this.collect(type, type.name, sets), data);
    const possible = [type.name, ...this.namedTypes(sets)];
    return Math.max(...possible.map((name) => this.fields(this.collect(type, name, sets), data)));
  }

  private fields(fields: Fields, data: Data | undefined): number {
    let cost = 0;
    for (const [key, { field, nodes }] of fields) {
      const type = getNamedType(field.type);
      if (!isCompositeType(type)) continue;
      const value = data?.[key];
      if (data !== undefined && (value === null || value === undefined)) continue;
      const sets = selectionSets(nodes);
      if (type.name.endsWith("Connection"))
        cost += CONNECTION_COST + this.connection(type, field, nodes, isData(value) ? value : undefined);
      else if (isListType(getNullableType(field.type)))
        cost += this.list(type, field, nodes, Array.isArray(value) ? value : undefined);
      else cost += 1 + this.selection(type, sets, isData(value) ? value : undefined);
    }
    return cost;
  }

  /** A list costs as much as its most expensive part. Only objects that are queried by id count one by one. */
  private list(
    type: GraphQLCompositeType,
    field: GraphQLField<unknown, unknown>,
    nodes: readonly FieldNode[],
    returned: unknown[] | undefined,
  ): number {
    const sets = selectionSets(nodes);
    const { ids } = this.argumentsOf(field, nodes);
    const each = returned?.map((part) => (isData(part) ? 1 + this.selection(type, sets, part) : 0));
    if (!Array.isArray(ids))
      return each === undefined ? 1 + this.selection(type, sets, undefined) : Math.max(0, ...each);
    return each === undefined
      ? ids.length * (1 + this.selection(type, sets, undefined))
      : each.reduce((sum, part) => sum + part, 0);
  }

  private connection(
    type: GraphQLCompositeType,
    field: GraphQLField<unknown, unknown>,
    nodes: readonly FieldNode[],
    returned: Data | undefined,
  ): number {
    const { first, last } = this.argumentsOf(field, nodes);
    const size = Number(first ?? last ?? 0);
    let highest = returned === undefined ? size : 0;
    for (const [key, sub] of this.collect(type, type.name, selectionSets(nodes))) {
      const { name } = sub.field;
      const part = getNamedType(sub.field.type);
      if ((name !== "nodes" && name !== "edges") || !isCompositeType(part)) continue;
      const parts = returned?.[key];
      const node = (value: unknown) =>
        Math.max(1, this.node(name, part, selectionSets(sub.nodes), isData(value) ? value : undefined));
      const cost = Array.isArray(parts)
        ? parts.reduce((sum: number, value) => sum + node(value), 0)
        : size * node(undefined);
      highest = Math.max(highest, cost);
    }
    return highest;
  }

  private node(
    name: string,
    type: GraphQLCompositeType,
    sets: readonly SelectionSetNode[],
    data: Data | undefined,
  ): number {
    const cost = this.selection(type, sets, data);
    // An edge does not count as an object, because its node does.
    return name === "nodes" ? 1 + cost : cost;
  }

  private argumentsOf(field: GraphQLField<unknown, unknown>, [node]: readonly FieldNode[]): Record<string, unknown> {
    return node === undefined ? {} : getArgumentValues(field, node, this.variables);
  }

  /** The fields that are selected of an object of the named type. */
  private collect(
    type: GraphQLCompositeType,
    name: string,
    sets: readonly SelectionSetNode[],
    into: Fields = new Map(),
  ): Fields {
    for (const selection of sets.flatMap(({ selections }) => selections)) {
      if (getDirectiveValues(GraphQLSkipDirective, selection, this.variables)?.["if"] === true) continue;
      if (getDirectiveValues(GraphQLIncludeDirective, selection, this.variables)?.["if"] === false) continue;
      if (selection.kind === Kind.FIELD) {
        const field = isUnionType(type) ? undefined : type.getFields()[selection.name.value];
        if (field === undefined) continue;
        const key = selection.alias?.value ?? selection.name.value;
        const known = into.get(key);
        if (known === undefined) into.set(key, { field, nodes: [selection] });
        else known.nodes.push(selection);
      } else {
        const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : this.fragments.get(selection.name.value);
        if (fragment === undefined) continue;
        const condition =
          fragment.typeCondition === undefined ? type : this.schema.getType(fragment.typeCondition.name.value);
        if (isCompositeType(condition) && this.applies(condition, name))
          this.collect(condition, name, [fragment.selectionSet], into);
      }
    }
    return into;
  }

  private applies(condition: GraphQLCompositeType, name: string): boolean {
    if (condition.name === name) return true;
    const type = this.schema.getType(name);
    return (
      isAbstractType(condition) &&
      (isObjectType(type) || isInterfaceType(type)) &&
      this.schema.isSubType(condition, type)
    );
  }

  private namedTypes(sets: readonly SelectionSetNode[]): string[] {
    return sets.flatMap(({ selections }) =>
      selections.flatMap((selection) => {
        if (selection.kind === Kind.FIELD) return [];
        const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : this.fragments.get(selection.name.value);
        return fragment === undefined
          ? []
          : [fragment.typeCondition?.name.value ?? "", ...this.namedTypes([fragment.selectionSet])];
      }),
    );
  }
}

function selectionSets(nodes: readonly FieldNode[]): SelectionSetNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
}

function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null;
}
