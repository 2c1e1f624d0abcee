import type { FieldDefinition } from "../../domain/fields/definition.ts";
import type { FieldValues } from "../../domain/fields/value.ts";

/** Definitions of custom fields. Values change only by records (`MirrorStore.applyRecords`). */
export interface FieldStore {
  /** Lists a shop's fields, including archived fields, in the order in which they were added. */
  list(shopId: number): Promise<FieldDefinition[]>;
  /**
   * Changes a shop's fields in one transaction. No commit of the shop runs at the same time.
   * @param change returns the new fields. It must have no side effects, because the engine may call it again. If it
   *   throws, nothing changes
   * @throws SdsError `not_found` for a removed shop
   */
  update(shopId: number, change: (fields: FieldDefinition[]) => FieldDefinition[]): Promise<FieldDefinition[]>;
  /** Returns the values of a subscription, including values of archived fields. @param id the internal id */
  valuesOf(shopId: number, id: string): Promise<FieldValues>;
}
