import type { ShopChanges } from "../../domain/decide/commit.ts";
import { type CommitKeys, needsFields } from "../../domain/decide/commit-keys.ts";
import type { LoadedRows } from "../../domain/decide/snapshot.ts";
import type { FieldDefinition } from "../../domain/fields/definition.ts";
import type { FieldValues } from "../../domain/fields/value.ts";
import { columnArrays, pipeline, type Queries, type Writes } from "./database.ts";
import { joinedTexts, splitTexts } from "./rows.ts";

type LoadedFields = Pick<LoadedRows, "fields" | "fieldValues">;

/**
 * Loads definitions and values of custom fields in the caller's transaction. Call this after `lockShops`. Sends all
 * statements without waiting for answers.
 * @returns the definitions and values by shop id
 */
export async function loadFields(tx: Queries, all: readonly CommitKeys[]): Promise<Map<number, LoadedFields>> {
  const keys = all.filter(needsFields);
  const loaded = new Map(
    keys.map(({ shop }): [number, LoadedFields] => [shop.id, { fields: [], fieldValues: new Map() }]),
  );
  if (keys.length === 0) return loaded;
  const [definitions, values] = await pipeline([
    tx.all<{ shopId: number; definitions: string }>(
      `SELECT shop_id::float8 AS "shopId", definitions FROM custom_fields WHERE shop_id = ANY($1::bigint[])`,
      [keys.map(({ shop }) => shop.id)],
    ),
    valuesOf(tx, keys),
  ]);
  for (const each of definitions)
    loaded.get(each.shopId)?.fields.push(...(JSON.parse(each.definitions) as FieldDefinition[]));
  for (const { shop, customFields } of keys)
    for (const id of customFields) loaded.get(shop.id)?.fieldValues.set(id, {});
  for (const { shopId, id, json } of values) loaded.get(shopId)?.fieldValues.set(id, JSON.parse(json) as FieldValues);
  return loaded;
}

async function valuesOf(
  tx: Queries,
  keys: readonly CommitKeys[],
): Promise<{ shopId: number; id: string; json: string }[]> {
  const wanted = keys.flatMap(({ shop, customFields }) => Array.from(customFields, (id) => ({ shopId: shop.id, id })));
  if (wanted.length === 0) return [];
  return tx.all(
    `SELECT shop_id::float8 AS "shopId", id, json
     FROM unnest($1::bigint[], $2::text[]) AS wanted (shop_id, id)
     CROSS JOIN LATERAL (
       SELECT json FROM subscription_fields AS fields
       WHERE fields.shop_id = wanted.shop_id AND fields.id = wanted.id LIMIT 1
     ) AS found`,
    columnArrays(wanted, ({ shopId, id }) => [shopId, id]),
  );
}

/** Writes a shop's values of custom fields. Also writes the shop's definitions if a field gets its first value. */
export async function writeFields(
  tx: Writes,
  shopId: number,
  { customFields, fields }: Pick<ShopChanges, "customFields" | "fields">,
): Promise<void> {
  const filled = customFields.filter(({ values }) => Object.keys(values).length > 0);
  const empty = customFields.filter(({ values }) => Object.keys(values).length === 0);
  const writes: Promise<unknown>[] = [];
  if (filled.length > 0)
    writes.push(
      tx.run(
        `INSERT INTO subscription_fields (shop_id, id, started_at, json)
         SELECT $1::bigint, * FROM unnest($2::text[], $3::bigint[], ${splitTexts(4)})
         ON CONFLICT (shop_id, id) DO UPDATE SET json = excluded.json`,
        [
          shopId,
          ...columnArrays(filled, ({ subscriptionId, startedAt }) => [subscriptionId, startedAt]),
          joinedTexts(filled.map(({ values }) => JSON.stringify(values))),
        ],
      ),
    );
  if (empty.length > 0) {
    const ids = empty.map(({ subscriptionId }) => subscriptionId);
    writes.push(
      tx.run("DELETE FROM subscription_fields WHERE shop_id = $1::bigint AND id = ANY($2::text[])", [shopId, ids]),
    );
  }
  if (fields !== null) {
    const definitions = JSON.stringify(fields);
    writes.push(
      tx.run("UPDATE custom_fields SET definitions = $2::text WHERE shop_id = $1::bigint", [shopId, definitions]),
    );
  }
  await pipeline(writes);
}
