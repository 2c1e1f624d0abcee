import type { ShopIds } from "../ids.ts";
import type { StoredText } from "../people/redaction.ts";
import type { CustomerRow, OccurrenceType, OrderRow, Row, SubscriptionRow } from "../rows.ts";
import type { MirrorView } from "./decision.ts";

/** What was loaded of one shop. Rows by internal id; null where the shop has none. */
export interface LoadedRows {
  customers: Map<string, CustomerRow | null>;
  subscriptions: Map<string, SubscriptionRow | null>;
  orders: Map<string, OrderRow | null>;
  /** Whether there is one, by `occurrenceKey`. */
  occurrences: Map<string, boolean>;
  /** Stored texts outside the rows that mention a person who is redacted. */
  texts: StoredText[];
}

/** Where an engine starts to load. */
export function noRows(): LoadedRows {
  return { customers: new Map(), subscriptions: new Map(), orders: new Map(), occurrences: new Map(), texts: [] };
}

/** Customers of loaded contracts that were not loaded yet: the second load. */
export function missingCustomers({ customers, subscriptions }: LoadedRows): string[] {
  const ids = new Set([...subscriptions.values()].flatMap((row) => (row === null ? [] : [row.resource.customerId])));
  return [...ids].filter((id) => !customers.has(id));
}

/** Names an occurrence in `LoadedRows`. */
export function occurrenceKey(type: OccurrenceType, id: string): string {
  return `${type} ${id}`;
}

function keyOf(row: Row): string {
  return row.kind === "occurrence" ? occurrenceKey(row.record.type, row.record.id) : row.resource.id;
}

/**
 * One shop's mirror during a commit: the loaded rows, with the changes of the commit so far. Changes of a submission
 * are drafts until `keepDrafts`, so that nothing of a refused submission is kept.
 *
 * It throws for a row that was not loaded. "Not loaded" is a defect of `keysOf`; "not there" is `undefined`.
 */
export class ShopSnapshot implements MirrorView {
  readonly ids: ShopIds;
  private readonly loaded: LoadedRows;
  private readonly changed = new Map<string, Row>();
  private readonly drafts = new Map<string, Row>();

  constructor(ids: ShopIds, loaded: LoadedRows) {
    this.ids = ids;
    this.loaded = loaded;
  }

  customer(id: string): CustomerRow | undefined {
    return (this.changedRow(id) as CustomerRow | undefined) ?? loadedRow(this.loaded.customers, id);
  }

  subscription(id: string): SubscriptionRow | undefined {
    return (this.changedRow(id) as SubscriptionRow | undefined) ?? loadedRow(this.loaded.subscriptions, id);
  }

  order(id: string): OrderRow | undefined {
    return (this.changedRow(id) as OrderRow | undefined) ?? loadedRow(this.loaded.orders, id);
  }

  hasOccurrence(type: OccurrenceType, id: string): boolean {
    const key = occurrenceKey(type, id);
    return this.changedRow(key) !== undefined || loadedRow(this.loaded.occurrences, key) === true;
  }

  put(row: Row): void {
    this.drafts.set(keyOf(row), row);
  }

  keepDrafts(): void {
    for (const [key, row] of this.drafts) this.changed.set(key, row);
    this.drafts.clear();
  }

  dropDrafts(): void {
    this.drafts.clear();
  }

  /** The rows that the commit writes, each once, in the order of their first change. `isNew` if none was stored. */
  changedRows(): { row: Row; isNew: boolean }[] {
    return [...this.changed.values()].map((row) => ({ row, isNew: !this.isStored(row) }));
  }

  private isStored(row: Row): boolean {
    const { customers, subscriptions, orders, occurrences } = this.loaded;
    const stored = { customer: customers, subscription: subscriptions, order: orders, occurrence: occurrences }[
      row.kind
    ].get(keyOf(row));
    return stored !== null && stored !== undefined && stored !== false;
  }

  private changedRow(key: string): Row | undefined {
    return this.drafts.get(key) ?? this.changed.get(key);
  }
}

function loadedRow<T>(loaded: ReadonlyMap<string, T | null>, key: string): T | undefined {
  const row = loaded.get(key);
  if (row === undefined) throw new Error(`a commit decides on a row that it did not load: ${key}`);
  return row ?? undefined;
}
