import type { Database } from "bun:sqlite";
import type { ShopChanges } from "../../domain/decide/commit.ts";
import type { CommitKeys } from "../../domain/decide/commit-keys.ts";
import type { LoadedRows } from "../../domain/decide/snapshot.ts";
import type { FieldDefinition } from "../../domain/fields/definition.ts";
import type { FieldValues } from "../../domain/fields/value.ts";

/** Reads and writes custom fields in the caller's transaction. */
export function customFields(db: Database) {
  const definitions = db.prepare<{ definitions: string }, [number]>(
    "SELECT definitions FROM custom_fields WHERE shop_id = ?",
  );
  const values = db.prepare<{ json: string }, [number, number, string]>(
    "SELECT json FROM subscription_fields WHERE shop_id = ? AND started_at = ? AND id = ?",
  );
  const writeValues = db.prepare<unknown, [number, number, string, string]>(
    `INSERT INTO subscription_fields (shop_id, started_at, id, json) VALUES (?, ?, ?, ?)
     ON CONFLICT (shop_id, started_at, id) DO UPDATE SET json = excluded.json`,
  );
  const removeValues = db.prepare<unknown, [number, number, string]>(
    "DELETE FROM subscription_fields WHERE shop_id = ? AND started_at = ? AND id = ?",
  );
  const writeFields = db.prepare("UPDATE custom_fields SET definitions = ? WHERE shop_id = ?");

  return {
    load({ shop, customFields }: CommitKeys, { rows, fields, fieldValues }: LoadedRows): void {
      const stored = definitions.get(shop.id);
      if (stored !== null) fields.push(...(JSON.parse(stored.definitions) as FieldDefinition[]));
      for (const id of customFields) {
        const row = rows.get(id);
        const startedAt = row?.kind === "subscription" ? Date.parse(row.resource.startedAt) : 0;
        const found = values.get(shop.id, startedAt, id);
        fieldValues.set(id, found === null ? {} : (JSON.parse(found.json) as FieldValues));
      }
    },

    /** Writes values. Also writes the definitions if a field gets its first value. */
    write(shopId: number, { customFields, fields }: Pick<ShopChanges, "customFields" | "fields">): void {
      for (const { subscriptionId, startedAt, values } of customFields) {
        if (Object.keys(values).length === 0) removeValues.run(shopId, startedAt, subscriptionId);
        else writeValues.run(shopId, startedAt, subscriptionId, JSON.stringify(values));
      }
      if (fields !== null) writeFields.run(JSON.stringify(fields), shopId);
    },
  };
}
