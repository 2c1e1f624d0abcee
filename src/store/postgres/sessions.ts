import type { Shop } from "../../domain/shop.ts";
import type { SessionStore } from "../port/sessions.ts";
import { type Database, pipeline } from "./database.ts";
import { readMeta, writeMeta } from "./migrate.ts";

const ADDRESS = "address";

export function sessionStore(db: Database): SessionStore {
  return {
    async addLink(shopId, hash, expiresAt) {
      await db.run("INSERT INTO admin_links (hash, shop_id, expires_at) VALUES ($1::bytea, $2::bigint, $3::bigint)", [
        hash,
        shopId,
        expiresAt,
      ]);
    },

    async begin(link, session, now, expiresAt) {
      const begun = await db.run(
        `WITH used AS (
           UPDATE admin_links SET used_at = $3::bigint
           WHERE hash = $1::bytea AND used_at IS NULL AND expires_at > $3::bigint RETURNING shop_id
         )
         INSERT INTO admin_sessions (hash, shop_id, created_at, expires_at)
         SELECT $2::bytea, shop_id, $3::bigint, $4::bigint FROM used`,
        [link, session, now, expiresAt],
      );
      return begun > 0;
    },

    async find(session, now) {
      return db.get<Shop>(
        `SELECT shops.id::float8 AS id, domain, plan, currency, shops.created_at::float8 AS "createdAt"
         FROM admin_sessions JOIN shops ON shops.id = shop_id
         WHERE hash = $1::bytea AND expires_at > $2::bigint`,
        [session, now],
      );
    },

    async end(session) {
      await db.run("DELETE FROM admin_sessions WHERE hash = $1::bytea", [session]);
    },

    async endAll(shopId, now) {
      return db.transaction(async (tx) => {
        // The links first: this waits for a session that is just beginning with one, and the next statement sees it.
        const [, ended] = await pipeline([
          tx.run("DELETE FROM admin_links WHERE shop_id = $1::bigint", [shopId]),
          tx.all<{ isOpen: boolean }>(
            `DELETE FROM admin_sessions WHERE shop_id = $1::bigint RETURNING expires_at > $2::bigint AS "isOpen"`,
            [shopId, now],
          ),
        ]);
        return ended.filter(({ isOpen }) => isOpen).length;
      });
    },

    async address() {
      return readMeta(db, ADDRESS);
    },

    async noteAddress(address) {
      await writeMeta(db, ADDRESS, address);
    },

    async forgetAddress(address) {
      await db.run("DELETE FROM meta WHERE name = $1::text AND value = $2::text", [ADDRESS, address]);
    },
  };
}
