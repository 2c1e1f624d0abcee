import { invalid, SdsError } from "../domain/error.ts";
import { type FieldDefinition, fieldNamed } from "../domain/fields/definition.ts";
import { type FieldValue, parseValueText, storedValue } from "../domain/fields/value.ts";
import { namedRow } from "../domain/pages/row-filter.ts";
import type { Subscription } from "../domain/resources.ts";
import type { Shop } from "../domain/shop.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { FieldStore } from "../store/port/fields.ts";
import type { Store } from "../store/port/store.ts";
import { type Actor, checkAccess } from "./access.ts";

interface DefinitionsRequest {
  shop: Shop;
  change: Parameters<FieldStore["update"]>[1];
  actor: Actor;
}

/**
 * Adds, changes or brings back custom fields. Archiving needs no plan, so callers archive a field directly in the
 * store.
 * @throws SdsError `plan_required` for a merchant, and what `change` throws; then nothing changes
 */
export async function changeFields(
  { fields }: Pick<Store, "fields">,
  { shop, change, actor }: DefinitionsRequest,
): Promise<{ fields: FieldDefinition[]; warnings: string[] }> {
  const warnings = checkAccess(shop, "custom fields", actor);
  return { fields: await fields.update(shop.id, change), warnings };
}

/** A subscription with its custom fields that are not archived. */
export interface EditableFields {
  subscription: Subscription;
  fields: { definition: FieldDefinition; value: FieldValue | null }[];
}

/** @param name internal id, gid, or the number of a gid @throws SdsError `invalid` for another text, `not_found` */
export async function findFields(
  { pages, fields }: Pick<Store, "pages" | "fields">,
  shop: Shop,
  name: string,
): Promise<EditableFields> {
  const named = namedRow("subscriptions", /^\d{1,20}$/.test(name) ? gidOf(name) : name, shop.firstDomain);
  if (named === undefined) throw invalid(`"${name}" is not the id or the gid of a subscription`);
  const row = await pages.find(shop.id, "subscriptions", named);
  if (row === undefined) throw new SdsError("not_found", `there is no subscription ${name}`);
  const subscription = JSON.parse(row.json) as Subscription;
  const values = await fields.valuesOf(shop.id, subscription.id);
  const shown = (await fields.list(shop.id)).filter(({ archivedAt }) => archivedAt === null);
  return {
    subscription,
    fields: shown.map((definition) => ({ definition, value: storedValue(values, definition.key) })),
  };
}

function gidOf(number: string): string {
  return `gid://shopify/SubscriptionContract/${number}`;
}

interface ValuesRequest {
  shop: Shop;
  /** The subscription's gid. */
  subscription: string;
  /** Texts as a person typed them; null clears the value. */
  changes: readonly { key: string; text: string | null }[];
  actor: Actor;
}

/**
 * Sets or clears values of a subscription's custom fields, as the merchant. An error changes nothing.
 * @returns warnings
 * @throws SdsError `plan_required` for a merchant, `not_found` for an unknown or archived key, `invalid` for a wrong
 *   value
 */
export async function setFieldValues(
  { fields }: Pick<Store, "fields">,
  writer: RecordWriter,
  { shop, subscription, changes, actor }: ValuesRequest,
): Promise<string[]> {
  const warnings = checkAccess(shop, "custom fields", actor);
  const definitions = await fields.list(shop.id);
  const records = changes.map(({ key, text }) => {
    const field = fieldNamed(definitions, key);
    if (field.archivedAt !== null) throw new SdsError("not_found", `the field ${key} is archived`);
    const value = text === null ? null : parseValueText(field, text);
    return { type: "custom_field" as const, subscription, key, value, by: "merchant" as const };
  });
  const result = await writer.submit({ shop, records });
  if ("refused" in result) throw invalid(`${result.refused.field} ${result.refused.reason}`);
  return warnings;
}
