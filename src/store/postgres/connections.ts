import type { ConnectionKind, Tokens } from "../../domain/platform/connection.ts";
import type { Vault } from "../files/vault.ts";
import { type ConnectionStore, tokensPurpose } from "../port/connections.ts";
import type { Database } from "./database.ts";

interface StoredConnection {
  kind: ConnectionKind;
  scopes: string;
  expiresAt: number | null;
  connectedAt: number;
  eventsSince: number;
  trouble: string | null;
}

export function connectionStore(db: Database, vault: Vault): ConnectionStore {
  const seal = (shopId: number, tokens: Tokens) => vault.seal(JSON.stringify(tokens), tokensPurpose(shopId));

  return {
    async find(shopId) {
      const found = await db.get<StoredConnection>(
        `SELECT kind, scopes, expires_at::float8 AS "expiresAt", connected_at::float8 AS "connectedAt",
           events_since::float8 AS "eventsSince", trouble
         FROM connections WHERE shop_id = $1::bigint`,
        [shopId],
      );
      if (found === undefined) return undefined;
      return { ...found, scopes: found.scopes.split(",").filter((scope) => scope !== "") };
    },

    async list() {
      const connected = await db.all<{ id: number }>(
        "SELECT shop_id::float8 AS id FROM connections ORDER BY connections.shop_id",
      );
      return connected.map(({ id }) => id);
    },

    async tokens(shopId) {
      const found = await db.get<{ sealed: Uint8Array }>("SELECT sealed FROM connections WHERE shop_id = $1::bigint", [
        shopId,
      ]);
      if (found === undefined) return undefined;
      return JSON.parse(await vault.openOften(found.sealed, tokensPurpose(shopId))) as Tokens;
    },

    async connect(shopId, kind, tokens, scopes, now) {
      await db.run(
        `INSERT INTO connections (shop_id, kind, sealed, expires_at, scopes, connected_at, events_since)
         VALUES ($1::bigint, $2::text, $3::bytea, $4::bigint, $5::text, $6::bigint, $6::bigint)
         ON CONFLICT (shop_id) DO UPDATE SET kind = excluded.kind, sealed = excluded.sealed,
           expires_at = excluded.expires_at, scopes = excluded.scopes, connected_at = excluded.connected_at,
           renewing = NULL, renewing_until = NULL, trouble = NULL`,
        [shopId, kind, await seal(shopId, tokens), tokens.expiresAt, scopes.join(","), now],
      );
    },

    async beginRenewal(shopId, process, now, until) {
      const begun = await db.run(
        `UPDATE connections SET renewing = $2::text, renewing_until = $4::bigint
         WHERE shop_id = $1::bigint AND (renewing IS NULL OR renewing_until < $3::bigint)`,
        [shopId, process, now, until],
      );
      return begun > 0;
    },

    async renew(shopId, tokens) {
      await db.run(
        `UPDATE connections SET sealed = $2::bytea, expires_at = $3::bigint, renewing = NULL, renewing_until = NULL
         WHERE shop_id = $1::bigint`,
        [shopId, await seal(shopId, tokens), tokens.expiresAt],
      );
    },

    async endRenewal(shopId, process) {
      await db.run(
        `UPDATE connections SET renewing = NULL, renewing_until = NULL
         WHERE shop_id = $1::bigint AND renewing = $2::text`,
        [shopId, process],
      );
    },

    async setScopes(shopId, scopes) {
      await db.run("UPDATE connections SET scopes = $2::text WHERE shop_id = $1::bigint", [shopId, scopes.join(",")]);
    },

    async setTrouble(shopId, trouble) {
      const changed = await db.run(
        "UPDATE connections SET trouble = $2::text WHERE shop_id = $1::bigint AND trouble IS DISTINCT FROM $2::text",
        [shopId, trouble],
      );
      return changed > 0;
    },

    async disconnect(shopId, before) {
      const gone = await db.run("DELETE FROM connections WHERE shop_id = $1::bigint AND connected_at < $2::bigint", [
        shopId,
        before,
      ]);
      return gone > 0;
    },
  };
}
