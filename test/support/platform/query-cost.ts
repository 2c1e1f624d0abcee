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
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
} from "graphql";

type Data = Readonly<Record<string, unknown>>;
/** A field of an answer that has a cost. A query can select it at several places, always with the same arguments. */
interface SelectedField {
  field: GraphQLField<unknown, unknown>;
  /** The type of the field's objects. */
  type: GraphQLCompositeType;
  /** The field at the first place. */
  node: FieldNode;
  /** The selection sets of all places. */
  sets: SelectionSetNode[];
}
type Fields = Map<string, SelectedField>;

const MUTATION_COST = 10;
const CONNECTION_COST = 2;
const COUNT_COST = 10;
/**
 * Types and fields whose objects cost nothing. All money is free. The recorded costs show that the other types and
 * fields in these lists are free.
 */
const FREE_TYPES = /^(Money(V2|Bag)|CustomerEmailMarketingConsentState|InventoryItemMeasurement|Weight)$/;
const FREE_FIELDS = new Set(["Customer.defaultAddress", "Customer.addresses"]);
/**
 * Types whose counts the platform has computed in advance. Such a count costs only as much as an object. In the
 * recorded costs, only products have such a count.
 */
const READY_COUNTS = new Set(["Product"]);

/**
 * The weight of n nodes of a connection, which is far below n. The formula `2 ln n` gives the weight for each page size
 * in the recorded costs (1, 2, 3, 4, 5, 10, 14, 20, 25, 50, 100, 110, 250). So other page sizes need no interpolation.
 */
export function pageWeight(nodes: number): number {
  return nodes < 1 ? 0 : Math.max(1, Math.floor(2 * Math.log(nodes)));
}

/**
 * The cost of an operation by the rules of the platform, fitted to recorded costs. A scalar and money cost nothing, an
 * object 1, a count 10, a mutation 10. A connection costs 2 + weight(page size) × cost of a node. Nodes and edges of
 * one connection both count. A list counts once, whatever its length. If a field can have several types, the most
 * expensive type counts. Without `data` this is the requested cost, with `data` the actual cost.
 *
 * The actual cost of a connection is an assumption: 2 + weight(number of returned nodes) × their mean cost. Recorded
 * actual costs agree in three cases:
 * - a query with `metafields(first: 10)` costs 8 points instead of 10 if it gets three metafields
 * - an empty connection of edges costs 2
 * - an object that is null costs 1
 *
 * Some connections of `nodes` keep the weight of the page size when they are empty, such as pages, blogs and articles.
 */
export class QueryCost {
  private readonly schema: GraphQLSchema;
  private readonly variables: Readonly<Record<string, unknown>>;
  private readonly fragments = new Map<string, FragmentDefinitionNode>();
  /** The fields by selection sets and type name. A page has many objects with the same selection sets. */
  private readonly known = new WeakMap<readonly SelectionSetNode[], Map<string, Fields>>();

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
    if (!isAbstractType(type)) return this.fields(type.name, this.fieldsOf(type, type.name, sets), data);
    const possible = [type.name, ...this.namedTypes(sets)];
    return Math.max(...possible.map((name) => this.fields(name, this.fieldsOf(type, name, sets), data)));
  }

  private fields(parent: string, fields: Fields, data: Data | undefined): number {
    let cost = 0;
    for (const [key, selected] of fields) {
      const { type } = selected;
      // Skips a field that belongs to another type than the returned object.
      if (data !== undefined && data[key] === undefined) continue;
      if (type.name === "Count") cost += READY_COUNTS.has(parent) ? 1 : COUNT_COST;
      else if (data !== undefined && !isData(data[key])) cost += 1;
      else cost += this.object(selected, data?.[key]);
    }
    return cost;
  }

  /**
   * The cost of a field that returns an object, a list or a connection.
   * @param value the returned value, for the actual cost; undefined for the requested cost
   */
  private object(selected: SelectedField, value: unknown): number {
    const { field, type, sets } = selected;
    if (type.name.endsWith("Connection"))
      return CONNECTION_COST + this.connection(selected, isData(value) ? value : undefined);
    if (!isListType(getNullableType(field.type)) || value === undefined)
      return 1 + this.selection(type, sets, isData(value) ? value : undefined);
    const parts = Array.isArray(value) ? value.filter(isData) : [];
    return 1 + Math.max(0, ...parts.map((part) => this.selection(type, sets, part)));
  }

  private connection(selected: SelectedField, returned: Data | undefined): number {
    const { type, sets } = selected;
    let eachNode = 0;
    let size = returned === undefined ? this.pageSize(selected) : 0;
    for (const [key, sub] of this.fieldsOf(type, type.name, sets)) {
      if (sub.type.name === "PageInfo") continue;
      const parts = returned?.[key];
      const values: (Data | undefined)[] = Array.isArray(parts) ? parts.filter(isData) : [undefined];
      if (returned !== undefined) size = Math.max(size, Array.isArray(parts) ? values.length : 0);
      const costs = values.map((value) => this.selection(sub.type, sub.sets, value));
      // An edge does not count as an object, because its node does.
      const own = sub.field.name === "edges" ? 0 : 1;
      if (costs.length > 0) eachNode += own + costs.reduce((sum, cost) => sum + cost, 0) / costs.length;
    }
    return Math.floor(pageWeight(size) * eachNode);
  }

  private pageSize({ field, node }: SelectedField): number {
    const { first, last } = getArgumentValues(field, node, this.variables);
    return Number(first ?? last ?? 0);
  }

  /** The fields with a cost that `sets` select from an object whose type has this `name`. */
  private fieldsOf(type: GraphQLCompositeType, name: string, sets: readonly SelectionSetNode[]): Fields {
    const fieldsByName = this.known.get(sets) ?? new Map<string, Fields>();
    this.known.set(sets, fieldsByName);
    const fields = fieldsByName.get(name) ?? this.collect(type, name, sets);
    fieldsByName.set(name, fields);
    return fields;
  }

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
        const field = fieldOf(type, selection.name.value);
        const fieldType = getNamedType(field?.type);
        if (field === undefined || !isCompositeType(fieldType)) continue;
        if (FREE_TYPES.test(fieldType.name) || FREE_FIELDS.has(`${name}.${field.name}`)) continue;
        const key = selection.alias?.value ?? selection.name.value;
        const selected = into.get(key) ?? { field, type: fieldType, node: selection, sets: [] };
        if (selection.selectionSet !== undefined) selected.sets.push(selection.selectionSet);
        into.set(key, selected);
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

function fieldOf(type: GraphQLCompositeType, name: string): GraphQLField<unknown, unknown> | undefined {
  if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
  if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
  return isUnionType(type) ? undefined : type.getFields()[name];
}

function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null;
}
