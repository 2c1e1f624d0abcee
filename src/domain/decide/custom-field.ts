import { type FieldDefinition, withValues } from "../fields/definition.ts";
import { type FieldValue, type FieldValues, storedValue, valueRefusal } from "../fields/value.ts";
import type { CustomFieldRecord } from "../records/record-schemas.ts";
import { refuse } from "../records/refusal.ts";
import type { CustomFieldsRow, SubscriptionRow } from "../rows.ts";
import { type Decision, type MirrorView, NOTHING, unknownContract } from "./snapshot.ts";

/**
 * Sets or clears the value of a custom field. Also writes the unchanged row of the subscription. The row gets a new
 * change number, so readers of changes get the new value.
 */
export function decideCustomField(mirror: MirrorView, record: CustomFieldRecord): Decision {
  const { subscription: gid, key, value, by } = record;
  const contract = mirror.subscription(mirror.ids.subscription(gid));
  if (contract === undefined) return unknownContract(gid);
  const field = mirror.fields.find((each) => each.key === key);
  if (field === undefined) return refuse("key", "names a field that the shop has not defined");
  if (field.archivedAt !== null) return refuse("key", "names an archived field");
  const refusal = value === null ? undefined : valueRefusal(field, value);
  if (refusal !== undefined) return refuse("value", refusal);
  if (by === "subscriber" && !field.subscriberEditable)
    return refuse("by", "must be merchant, because subscribers may not edit this field");
  const before = mirror.fieldValues(contract.resource.id);
  if (storedValue(before, key) === value) return NOTHING;
  const values = ordered(mirror.fields, (each) => (each === key ? value : storedValue(before, each)));
  return { rows: [contract], events: [], customFields: [fieldsOf(contract, values)] };
}

/** Removes the values of personal fields. @returns undefined for a subscription without such values */
export function withoutPersonalFields(mirror: MirrorView, contract: SubscriptionRow): CustomFieldsRow | undefined {
  const personal = new Set(mirror.fields.filter((field) => field.personal).map(({ key }) => key));
  const before = mirror.fieldValues(contract.resource.id);
  if (!Object.keys(before).some((key) => personal.has(key))) return undefined;
  return fieldsOf(
    contract,
    ordered(mirror.fields, (key) => (personal.has(key) ? null : storedValue(before, key))),
  );
}

/** Marks the fields that get their first value. @returns null if no field gets its first value */
export function withFirstValues(
  fields: readonly FieldDefinition[],
  customFields: readonly CustomFieldsRow[],
): FieldDefinition[] | null {
  const keys = new Set(customFields.flatMap(({ values }) => Object.keys(values)));
  return fields.some(({ key, hasValues }) => keys.has(key) && !hasValues) ? withValues(fields, keys) : null;
}

function fieldsOf({ resource }: SubscriptionRow, values: FieldValues): CustomFieldsRow {
  return { subscriptionId: resource.id, startedAt: Date.parse(resource.startedAt), values };
}

/** Puts values into the order of the definitions. */
function ordered(fields: readonly FieldDefinition[], of: (key: string) => FieldValue | null): FieldValues {
  const entries = fields.flatMap(({ key }): [string, FieldValue][] => {
    const value = of(key);
    return value === null ? [] : [[key, value]];
  });
  return Object.fromEntries(entries);
}
