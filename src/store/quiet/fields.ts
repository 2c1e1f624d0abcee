import { SdsError } from "../../domain/error.ts";
import { type FieldDefinition, hiddenKeys } from "../../domain/fields/definition.ts";
import type { FieldValues } from "../../domain/fields/value.ts";
import type { HiddenKeys } from "../engine/shown-fields.ts";
import type { FieldStore } from "../port/fields.ts";
import { either, lockFor, parameter, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

interface StoredFields {
  /** JSON array of FieldDefinition. */
  definitions: string;
  hiddenKeys: string;
}

/** Makes the store. All definitions of a shop are one row, because they are read and checked together. */
export function fieldStore(db: QuietDatabase): FieldStore {
  return {
    async list(shopId) {
      return fieldsOf(await db.get<StoredFields>(sql`SELECT definitions FROM custom_fields WHERE shop_id = ${shopId}`));
    },

    update: (shopId, change) => db.transaction(() => update(db, shopId, change)),

    async valuesOf(shopId, id) {
      const stored = await db.get<{ json: string }>(
        sql`SELECT fields.json FROM subscriptions JOIN subscription_fields AS fields
            ON fields.shop_id = subscriptions.shop_id AND fields.started_at = subscriptions.started_at
            AND fields.id = subscriptions.id
          WHERE subscriptions.shop_id = ${shopId} AND subscriptions.id = ${id}`,
      );
      return stored === undefined ? {} : (JSON.parse(stored.json) as FieldValues);
    },
  };
}

/** Returns a function that reads the keys of a shop's archived fields. */
export function hiddenKeysReader(db: QuietDatabase): HiddenKeys {
  return db.prepare(sql`SELECT hidden_keys AS "hiddenKeys" FROM custom_fields WHERE shop_id = ${parameter("bigint")}`);
}

function fieldsOf(stored: Pick<StoredFields, "definitions"> | undefined): FieldDefinition[] {
  return stored === undefined ? [] : (JSON.parse(stored.definitions) as FieldDefinition[]);
}

function* update(
  db: QuietDatabase,
  shopId: number,
  change: (fields: FieldDefinition[]) => FieldDefinition[],
): TransactionWork<FieldDefinition[]> {
  // Commits of the shop wait for this lock, so no commit runs beside this change. Commits and this change take their
  // locks in the same order, which prevents a deadlock.
  if (db.engine === "postgres")
    yield* tx.get(sql`SELECT 1 AS one FROM shop_changes WHERE shop_id = ${shopId} FOR NO KEY UPDATE`);
  const shop = yield* tx.get(
    sql`SELECT 1 AS one FROM shops WHERE id = ${shopId} AND removal_started_at IS NULL ${lockFor(db, "KEY SHARE")}`,
  );
  if (shop === undefined) throw new SdsError("not_found", "the shop was removed");
  const stored = yield* tx.get<StoredFields>(
    sql`SELECT definitions, hidden_keys AS "hiddenKeys" FROM custom_fields WHERE shop_id = ${shopId}`,
  );
  const fields = change(fieldsOf(stored));
  const hidden = JSON.stringify(hiddenKeys(fields));
  yield* tx.run(
    sql`INSERT INTO custom_fields (shop_id, definitions, hidden_keys)
      VALUES (${shopId}, ${JSON.stringify(fields)}, ${hidden})
      ON CONFLICT (shop_id) DO UPDATE SET definitions = excluded.definitions, hidden_keys = excluded.hidden_keys`,
  );
  if (hidden !== (stored?.hiddenKeys ?? "[]")) yield* tx.run(countChange(db, shopId));
  return fields;
}

/**
 * Raises the shop's change count, although no row changes. Otherwise cached answers would keep showing the previous
 * fields.
 */
function countChange(db: QuietDatabase, shopId: number) {
  return either(db, {
    sqlite: sql`UPDATE shops SET change_count = change_count + 1 WHERE id = ${shopId}`,
    postgres: sql`UPDATE shop_changes SET change_count = change_count + 1,
        noted_count = CASE WHEN noted_count = change_count THEN noted_count + 1 ELSE noted_count END
      WHERE shop_id = ${shopId}`,
  });
}
