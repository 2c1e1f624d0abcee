import { SdsError } from "../../domain/error.ts";
import type { ApiKey } from "../../domain/key.ts";
import type { KeyOwner, KeyStore } from "../port/keys.ts";
import type { Database } from "./database.ts";

export function keyStore(db: Database): KeyStore {
  return {
    async add(shopId, { id, label, fingerprint, createdAt, lastUsedAt, legacy }, hash) {
      const added = await db.run(
        `INSERT INTO api_keys (id, shop_id, label, hash, fingerprint, legacy, created_at, last_used_at)
         VALUES ($1::text, $2::bigint, $3::text, $4::bytea, $5::text, $6::boolean, $7::bigint, $8::bigint)
         ON CONFLICT DO NOTHING`,
        [id, shopId, label, hash, fingerprint, legacy, createdAt, lastUsedAt],
      );
      if (added === 0)
        throw new SdsError("conflict", "this key was stored before, and may have been revoked since: create a new one");
    },

    async list(shopId) {
      return db.all<ApiKey>(
        `SELECT id, label, fingerprint, created_at::float8 AS "createdAt", last_used_at::float8 AS "lastUsedAt", legacy
         FROM api_keys WHERE shop_id = $1::bigint AND revoked_at IS NULL ORDER BY api_keys.created_at, id`,
        [shopId],
      );
    },

    async find(hash) {
      return db.get<KeyOwner>(
        `SELECT api_keys.id AS "keyId", shop_id::float8 AS "shopId", domain, plan,
           change_count::float8 AS "changeCount", last_used_at::float8 AS "lastUsedAt"
         FROM api_keys JOIN shops ON shops.id = shop_id JOIN shop_changes USING (shop_id)
         WHERE hash = $1::bytea AND revoked_at IS NULL`,
        [hash],
      );
    },

    async revoke(shopId, idOrFingerprint, now) {
      return db.transaction(async (tx) => {
        const found = await tx.all<{ id: string }>(
          `SELECT id FROM api_keys WHERE shop_id = $1::bigint AND revoked_at IS NULL
             AND (id = $2::text OR fingerprint = $2::text) ORDER BY id FOR UPDATE`,
          [shopId, idOrFingerprint],
        );
        const [key, ...others] = found;
        if (key === undefined)
          throw new SdsError("not_found", `there is no key ${idOrFingerprint}, or it is revoked already`);
        const ids = found.map(({ id }) => id).join(", ");
        if (others.length > 0)
          throw new SdsError("invalid", `several keys begin with ${idOrFingerprint}: name one by its id (${ids})`);
        await tx.run("UPDATE api_keys SET revoked_at = $1::bigint WHERE id = $2::text", [now, key.id]);
        return { id: key.id, revokedAt: now };
      });
    },

    async touch(uses) {
      await db.run(
        `UPDATE api_keys SET last_used_at = greatest(last_used_at, used.at)
         FROM unnest($1::text[], $2::bigint[]) AS used (id, at) WHERE api_keys.id = used.id`,
        [[...uses.keys()], [...uses.values()]],
      );
    },
  };
}
