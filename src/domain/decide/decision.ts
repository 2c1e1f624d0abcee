import type { Event } from "../events/event.ts";
import type { ShopIds } from "../ids.ts";
import type { Refusal } from "../records/refusal.ts";
import type { CustomerRow, OccurrenceType, OrderRow, Row, SubscriptionRow } from "../rows.ts";

/** The mirror of one shop before a record is applied. */
export interface MirrorView {
  ids: ShopIds;
  customer(id: string): CustomerRow | undefined;
  subscription(id: string): SubscriptionRow | undefined;
  order(id: string): OrderRow | undefined;
  hasOccurrence(type: OccurrenceType, id: string): boolean;
}

/**
 * The rows that a record changes and its events, or why the record is refused. Rows and events are empty if the record
 * says nothing new.
 */
export type Decision = { rows: Row[]; events: Event[] } | { refused: Refusal };

export const NOTHING: Decision = { rows: [], events: [] };

/** Returns the stored value if the field is absent. */
export function keep<T>(given: T | undefined, stored: T): T {
  return given === undefined ? stored : given;
}

/** Compares rows as JSON. So every row must have its fields in the order of its interface. */
export function differs(before: Row | undefined, after: Row): boolean {
  return before === undefined || JSON.stringify(before) !== JSON.stringify(after);
}

/** Refuses a record that names a contract which is not in the mirror. */
export function unknownContract(gid: string): { refused: Refusal } {
  return { refused: { field: "subscription", reason: `names a contract that is not in the mirror: ${gid}` } };
}
