import { invalid, SdsError } from "../domain/error.ts";
import { type FieldDefinition, fieldNamed } from "../domain/fields/definition.ts";
import { type FieldValue, parseValueText } from "../domain/fields/value.ts";
import { namedRow } from "../domain/pages/row-filter.ts";
import type { Subscription } from "../domain/resources.ts";
import type { Shop } from "../domain/shop.ts";
import { isoUtcOrNull } from "../lib/time.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { Store } from "../store/port/store.ts";

/** A definition as commands and pages show it. */
export function shownField({ archivedAt, hasValues: _, ...field }: FieldDefinition) {
  return { ...field, archivedAt: isoUtcOrNull(archivedAt) };
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
  const named = namedRow("subscriptions", /^\d{1,20}$/.test(name) ? gidOf(name) : name, shop.domain);
  if (named === undefined) throw invalid(`"${name}" is not the id or the gid of a subscription`);
  const row = await pages.find(shop.id, "subscriptions", named);
  if (row === undefined) throw new SdsError("not_found", `there is no subscription ${name}`);
  const subscription = JSON.parse(row.json) as Subscription;
  const values = await fields.valuesOf(shop.id, subscription.id);
  const shown = (await fields.list(shop.id)).filter(({ archivedAt }) => archivedAt === null);
  return {
    subscription,
    fields: shown.map((definition) => {
      const { key } = definition;
      return { definition, value: Object.hasOwn(values, key) ? (values[key] ?? null) : null };
    }),
  };
}

function gidOf(number: string): string {
  return `gid://shopify/SubscriptionContract/${number}`;
}

interface ValueChange {
  subscription: string;
  key: string;
  /** As a person typed it; null clears the value. */
  text: string | null;
}

/**
 * Sets or clears values of a subscription's custom fields, as a merchant. An error changes nothing.
 * @param subscription its gid
 * @throws SdsError `not_found` for an unknown key, `invalid` for a wrong value
 */
export async function setFieldValues(
  { fields }: Pick<Store, "fields">,
  writer: RecordWriter,
  shop: Shop,
  changes: readonly ValueChange[],
): Promise<void> {
  const definitions = await fields.list(shop.id);
  const records = changes.map(({ subscription, key, text }) => ({
    type: "custom_field" as const,
    subscription,
    key,
    value: text === null ? null : parseValueText(fieldNamed(definitions, key), text),
    by: "merchant" as const,
  }));
  const result = await writer.submit({ shop, records });
  if ("refused" in result) throw invalid(`${result.refused.field} ${result.refused.reason}`);
}
