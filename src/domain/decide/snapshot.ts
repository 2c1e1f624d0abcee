import type { Event } from "../events/event.ts";
import type { FieldDefinition } from "../fields/definition.ts";
import type { FieldValues } from "../fields/value.ts";
import type { ShopIds } from "../ids.ts";
import type { StoredText } from "../people/redaction.ts";
import type { Refusal } from "../records/refusal.ts";
import type { CustomerRow, CustomFieldsRow, OccurrenceType, OrderRow, Row, SubscriptionRow } from "../rows.ts";

/** The mirror of one shop before a record is applied. */
export interface MirrorView {
  ids: ShopIds;
  /** The shop's change count before the commit. */
  changeCount: number;
  customer(id: string): CustomerRow | undefined;
  subscription(id: string): SubscriptionRow | undefined;
  order(id: string): OrderRow | undefined;
  hasOccurrence(type: OccurrenceType, id: string): boolean;
  /** The shop's definitions of custom fields, including archived fields. */
  fields: readonly FieldDefinition[];
  /** @param id of the subscription */
  fieldValues(id: string): FieldValues;
  /** Returns a customer's subscriptions and orders, if the commit redacts the customer. @param id of the customer */
  rowsOf(id: string): (SubscriptionRow | OrderRow)[];
}

/**
 * The rows that a record changes and the events that it causes, or why the record is refused. Rows and events are empty
 * if the record says nothing new.
 */
export type Decision = { rows: Row[]; events: Event[]; customFields?: CustomFieldsRow[] } | { refused: Refusal };

export const NOTHING: Decision = { rows: [], events: [] };

/** The view of a shop without custom fields. */
export const WITHOUT_FIELDS = {
  fields: [],
  fieldValues: () => ({}),
  rowsOf: () => [],
} satisfies Partial<MirrorView>;

/** Returns the given value; the stored value if the record does not have the field. */
export function keep<T>(given: T | undefined, stored: T): T {
  return given === undefined ? stored : given;
}

/** Whether two rows differ as JSON. So every row must have its fields in the order of its interface. */
export function differs(before: Row | undefined, after: Row): boolean {
  return before === undefined || JSON.stringify(before) !== JSON.stringify(after);
}

/** Refuses a record, because its contract is not in the mirror. */
export function unknownContract(gid: string): { refused: Refusal } {
  return { refused: { field: "subscription", reason: `names a contract that is not in the mirror: ${gid}` } };
}

/** What a commit loaded for one shop. */
export interface LoadedRows {
  /** Rows by internal id; null if the shop has no such row. */
  rows: Map<string, Row | null>;
  /** For each occurrence, whether the shop has the occurrence. The keys come from `occurrenceKey`. */
  occurrences: Map<string, boolean>;
  /** Texts that are not stored in rows, and that may name a redacted person. */
  texts: StoredText[];
  /** The shop's definitions of custom fields, including archived fields; empty if `needsFields` is false. */
  fields: FieldDefinition[];
  /** Values of custom fields, by the subscription's id; empty for a subscription without values. */
  fieldValues: Map<string, FieldValues>;
}

/** Makes empty rows, which an engine fills while it loads. */
export function noRows(): LoadedRows {
  return { rows: new Map(), occurrences: new Map(), texts: [], fields: [], fieldValues: new Map() };
}

/** Returns the ids of customers whose contracts are loaded, but who are not loaded yet. A second load reads them. */
export function missingCustomers({ rows }: LoadedRows): string[] {
  const ids = [...rows.values()].flatMap((row) => (row?.kind === "subscription" ? [row.resource.customerId] : []));
  return [...new Set(ids)].filter((id) => !rows.has(id));
}

/** Returns the key of an occurrence in `LoadedRows`. */
export function occurrenceKey(type: OccurrenceType, id: string): string {
  return `${type} ${id}`;
}

function keyOf(row: Row): string {
  return row.kind === "occurrence" ? occurrenceKey(row.record.type, row.record.id) : row.resource.id;
}

/**
 * One shop's mirror during a commit: the loaded rows, with the changes of the commit so far. Changes of a submission
 * stay drafts until `keepDrafts`, so that a refused submission leaves no change. A look-up of a row that was not loaded
 * throws, because `keysOf` must name every row. A look-up returns undefined for a row that the shop does not have.
 */
export class ShopSnapshot implements MirrorView {
  readonly ids: ShopIds;
  readonly changeCount: number;
  private readonly loaded: LoadedRows;
  private readonly changed = new Map<string, Row>();
  private readonly drafts = new Map<string, Row>();
  private readonly changedFields = new Map<string, CustomFieldsRow>();
  private readonly draftFields = new Map<string, CustomFieldsRow>();

  constructor(ids: ShopIds, changeCount: number, loaded: LoadedRows) {
    this.ids = ids;
    this.changeCount = changeCount;
    this.loaded = loaded;
  }

  customer(id: string): CustomerRow | undefined {
    return this.row(id) as CustomerRow | undefined;
  }

  subscription(id: string): SubscriptionRow | undefined {
    return this.row(id) as SubscriptionRow | undefined;
  }

  order(id: string): OrderRow | undefined {
    return this.row(id) as OrderRow | undefined;
  }

  hasOccurrence(type: OccurrenceType, id: string): boolean {
    const key = occurrenceKey(type, id);
    return this.changedRow(key) !== undefined || loadedValue(this.loaded.occurrences, key);
  }

  get fields(): readonly FieldDefinition[] {
    return this.loaded.fields;
  }

  fieldValues(id: string): FieldValues {
    const changed = this.draftFields.get(id) ?? this.changedFields.get(id);
    return changed?.values ?? loadedValue(this.loaded.fieldValues, id);
  }

  rowsOf(customerId: string): (SubscriptionRow | OrderRow)[] {
    return [...this.loaded.rows.keys()]
      .flatMap((id) => this.row(id) ?? [])
      .filter((row) => row.kind === "subscription" || row.kind === "order")
      .filter(({ resource }) => resource.customerId === customerId);
  }

  put(row: Row): void {
    this.drafts.set(keyOf(row), row);
  }

  putFields(fields: CustomFieldsRow): void {
    this.draftFields.set(fields.subscriptionId, fields);
  }

  keepDrafts(): void {
    for (const [key, row] of this.drafts) this.changed.set(key, row);
    for (const [id, fields] of this.draftFields) this.changedFields.set(id, fields);
    this.dropDrafts();
  }

  dropDrafts(): void {
    this.drafts.clear();
    this.draftFields.clear();
  }

  /** Returns the rows that the commit writes, each once, in the order of their first change. */
  changedRows(): { row: Row; isNew: boolean }[] {
    const { rows, occurrences } = this.loaded;
    return Array.from(this.changed, ([key, row]) => ({ row, isNew: !rows.get(key) && !occurrences.get(key) }));
  }

  /** Returns the custom fields that the commit writes. */
  changedCustomFields(): CustomFieldsRow[] {
    return [...this.changedFields.values()];
  }

  private row(id: string): Row | undefined {
    return this.changedRow(id) ?? loadedValue(this.loaded.rows, id) ?? undefined;
  }

  private changedRow(key: string): Row | undefined {
    return this.drafts.get(key) ?? this.changed.get(key);
  }
}

function loadedValue<T>(loaded: ReadonlyMap<string, T>, key: string): T {
  const value = loaded.get(key);
  if (value === undefined) throw new Error(`a commit decides on a row that it did not load: ${key}`);
  return value;
}
