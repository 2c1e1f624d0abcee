import type { Actor, AuditedValues } from "../domain/audit.ts";
import { invalid, SdsError } from "../domain/error.ts";
import { archiveField as archive, type FieldDefinition, fieldNamed } from "../domain/fields/definition.ts";
import { type FieldValue, parseValueText, storedValue } from "../domain/fields/value.ts";
import { namedRow } from "../domain/pages/row-filter.ts";
import type { Subscription } from "../domain/resources.ts";
import type { Shop } from "../domain/shop.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { FieldStore } from "../store/port/fields.ts";
import type { Store } from "../store/port/store.ts";
import { checkAccess } from "./access.ts";
import { type ActorInShop, audited, noteInAudit } from "./audit.ts";
import { gidOfNumber } from "./row-search.ts";

interface DefinitionsRequest {
  shop: Shop;
  change: Parameters<FieldStore["update"]>[1];
  /** The key of the field. */
  subject: string;
  actor: Actor;
}

/** Archives a field, on any plan. @throws SdsError `not_found` */
export function archiveField(
  store: Pick<Store, "fields" | "audited">,
  by: ActorInShop,
  key: string,
  now: number,
): Promise<FieldDefinition[]> {
  return update(store, by, key, (all) => archive(all, key, now), now);
}

/**
 * Adds, changes or brings back custom fields.
 * @throws SdsError `plan_required` for a merchant, or an error of `change`; then nothing changes
 */
export async function changeFields(
  store: Pick<Store, "fields" | "audited">,
  { shop, change, subject, actor }: DefinitionsRequest,
  now: number,
): Promise<{ fields: FieldDefinition[]; warnings: string[] }> {
  const warnings = checkAccess(shop, "custom fields", actor);
  return { fields: await update(store, { shop, actor }, subject, change, now), warnings };
}

/** Changes the definitions. The entry of the audit list shows how the field with the key `subject` changed. */
async function update(
  store: Pick<Store, "fields" | "audited">,
  by: ActorInShop,
  subject: string,
  change: DefinitionsRequest["change"],
  now: number,
): Promise<FieldDefinition[]> {
  const stored = await store.fields.list(by.shop.id);
  const [before, after] = [auditedField(stored, subject), auditedField(change(stored), subject)];
  const isSame = Bun.deepEquals(before, after);
  const { fields } = isSame ? store : audited(store, by, now, "fields.changed", { subject, before, after });
  return fields.update(by.shop.id, change);
}

function auditedField(fields: readonly FieldDefinition[], key: string): AuditedValues {
  const field = fields.find((each) => each.key === key);
  if (field === undefined) return {};
  const { label, type, options, subscriberEditable, personal, archivedAt } = field;
  const yesOrNo = (isTrue: boolean) => (isTrue ? "yes" : "no");
  return {
    ...{ label, type, options: options.join(", ") },
    "subscribers may edit": yesOrNo(subscriberEditable),
    ...{ personal: yesOrNo(personal), archived: yesOrNo(archivedAt !== null) },
  };
}

/** A subscription with its custom fields that are not archived. */
export interface EditableFields {
  subscription: Subscription;
  fields: { definition: FieldDefinition; value: FieldValue | null }[];
}

/** Finds a subscription by internal id, gid, or number of a gid. @throws SdsError `invalid`, `not_found` */
export async function findFields(
  { pages, fields }: Pick<Store, "pages" | "fields">,
  shop: Shop,
  name: string,
): Promise<EditableFields> {
  const named = namedRow(
    "subscriptions",
    /^\d{1,20}$/.test(name) ? gidOfNumber("subscriptions", name) : name,
    shop.firstDomain,
  );
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

interface ValuesRequest {
  shop: Shop;
  /** The subscription's gid. */
  subscription: string;
  /** Texts as a person typed them; null clears the value. */
  changes: readonly { key: string; text: string | null }[];
  actor: Actor;
}

/**
 * Sets or clears values of a subscription's custom fields, as the merchant. If this throws, no value changes.
 * @returns warnings
 * @throws SdsError `plan_required` for a merchant, `not_found` for an unknown or archived key, `invalid` for a wrong
 *   value
 */
export async function setFieldValues(
  store: Pick<Store, "fields" | "audit">,
  writer: RecordWriter,
  { shop, subscription, changes, actor }: ValuesRequest,
  now: number,
): Promise<string[]> {
  const warnings = checkAccess(shop, "custom fields", actor);
  const definitions = await store.fields.list(shop.id);
  const records = changes.map(({ key, text }) => {
    const field = fieldNamed(definitions, key);
    if (field.archivedAt !== null) throw new SdsError("not_found", `the field ${key} is archived`);
    const value = text === null ? null : parseValueText(field, text);
    return { type: "custom_field" as const, subscription, key, value, by: "merchant" as const };
  });
  const result = await writer.submit({ shop, records });
  if ("refused" in result) throw invalid(`${result.refused.field} ${result.refused.reason}`);
  const after = { fields: changes.map(({ key }) => key).join(", ") };
  await noteInAudit(store, { shop, actor }, now, "values.changed", { subject: subscription, after });
  return warnings;
}
