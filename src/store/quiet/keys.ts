import { invalid, SdsError } from "../../domain/error.ts";
import type { ApiKey } from "../../domain/key.ts";
import type { KeyOwner, KeyStore } from "../port/keys.ts";
import { lockFor, parameter, type QuietDatabase, sql, type TransactionWork, tableOf, tx } from "./quiet-database.ts";
import { joinCounters } from "./shops.ts";

const COLUMNS = sql`id, label, fingerprint, created_at AS "createdAt", last_used_at AS "lastUsedAt", legacy,
  created_by AS "createdBy"`;
/**
 * SQL condition of shops that can be read. While a move copies the last changes, the shop is hidden in both databases.
 * Only the source has all rows then, so the source still serves the shop's readers.
 */
const IS_READABLE = sql`(removal_started_at IS NULL OR EXISTS
  (SELECT 1 FROM shop_moves WHERE shop_moves.shop_id = shops.id AND state = 'leaving'))`;

export function keyStore(db: QuietDatabase): KeyStore {
  return {
    async add(shopId, { id, label, fingerprint, createdAt, lastUsedAt, legacy, createdBy }, hash) {
      const added = await db.run(
        sql`INSERT INTO api_keys (id, shop_id, label, hash, fingerprint, legacy, created_at, last_used_at,
            created_by)
          VALUES (${id}, ${shopId}, ${label}, ${hash}, ${fingerprint}, ${legacy}, ${createdAt}, ${lastUsedAt},
            ${createdBy})
          ON CONFLICT DO NOTHING`,
      );
      if (added === 0)
        throw new SdsError("conflict", "this key was stored before, and may have been revoked since: create a new one");
    },

    async list(shopId) {
      const keys = await db.all<ApiKey>(
        sql`SELECT ${COLUMNS} FROM api_keys WHERE shop_id = ${shopId} AND revoked_at IS NULL ORDER BY created_at, id`,
      );
      return keys.map(decoded);
    },

    find: db.prepare<KeyOwner>(
      sql`SELECT api_keys.id AS "keyId", shops.id AS "shopId", domain, coalesce(first_domain, domain) AS "firstDomain",
          plan, change_count AS "changeCount", branch, last_used_at AS "lastUsedAt"
        FROM api_keys JOIN shops ON shops.id = api_keys.shop_id ${joinCounters(db)}
        WHERE hash = ${parameter("bytea")} AND revoked_at IS NULL AND ${IS_READABLE}`,
    ),

    revoke: (shopId, idOrFingerprint, now) => db.transaction(() => revoke(db, shopId, idOrFingerprint, now)),

    async touch(uses) {
      const used = tableOf(
        db,
        "used",
        { id: "text", at: "bigint" },
        Array.from(uses, ([id, at]) => ({ id, at })),
      );
      await db.run(
        sql`UPDATE api_keys SET last_used_at = used.at FROM ${used}
          WHERE api_keys.id = used.id AND (last_used_at IS NULL OR last_used_at < used.at)`,
      );
    },
  };
}

function* revoke(
  db: QuietDatabase,
  shopId: number,
  idOrFingerprint: string,
  now: number,
): TransactionWork<ApiKey & { revokedAt: number }> {
  // Refuses to revoke a key while its shop moves, because the key would stay valid in the other database.
  const shop = yield* tx.get(
    sql`SELECT 1 AS one FROM shops WHERE id = ${shopId} AND removal_started_at IS NULL ${lockFor(db, "KEY SHARE")}`,
  );
  if (shop === undefined) throw new SdsError("not_found", "the shop moves to another database, or was removed");
  const keys = yield* tx.all<ApiKey>(
    sql`SELECT ${COLUMNS} FROM api_keys WHERE shop_id = ${shopId} AND revoked_at IS NULL
        AND (id = ${idOrFingerprint} OR fingerprint = ${idOrFingerprint})
      ORDER BY id ${lockFor(db, "UPDATE")}`,
  );
  const [key, ...others] = keys;
  if (key === undefined)
    throw new SdsError("not_found", `there is no key ${idOrFingerprint}, or it is revoked already`);
  const ids = keys.map(({ id }) => id).join(", ");
  if (others.length > 0) throw invalid(`several keys begin with ${idOrFingerprint}: name one by its id (${ids})`);
  yield* tx.run(sql`UPDATE api_keys SET revoked_at = ${now} WHERE id = ${key.id}`);
  return { ...decoded(key), revokedAt: now };
}

/** Converts `legacy`: SQLite returns 0 or 1 for booleans. */
function decoded(key: ApiKey): ApiKey {
  return { ...key, legacy: Boolean(key.legacy) };
}
