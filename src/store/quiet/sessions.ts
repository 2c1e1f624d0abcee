import type { Shop } from "../../domain/shop.ts";
import type { SessionStore } from "../port/sessions.ts";
import { entryInsertion } from "./audit.ts";
import { either, type QuietDatabase, sql, tx } from "./quiet-database.ts";

export function sessionStore(db: QuietDatabase): SessionStore {
  return {
    async addLink(shopId, hash, expiresAt) {
      await db.run(sql`INSERT INTO admin_links (hash, shop_id, expires_at) VALUES (${hash}, ${shopId}, ${expiresAt})`);
    },

    begin: (link, session, entry, expiresAt) =>
      db.transaction(function* () {
        const now = entry.at;
        const used = yield* tx.get<{ shopId: number }>(
          sql`UPDATE admin_links SET used_at = ${now}
            WHERE hash = ${link} AND used_at IS NULL AND expires_at > ${now}
              AND shop_id IN (SELECT id FROM shops WHERE removal_started_at IS NULL) RETURNING shop_id AS "shopId"`,
        );
        if (used === undefined) return false;
        yield* tx.run(
          sql`INSERT INTO admin_sessions (hash, shop_id, created_at, expires_at)
            VALUES (${session}, ${used.shopId}, ${now}, ${expiresAt})`,
        );
        yield* tx.run(entryInsertion(used.shopId, entry));
        return true;
      }),

    async find(session, now) {
      const row = await db.get<Shop & { expiresAt: number }>(
        sql`SELECT shops.id, domain, coalesce(first_domain, domain) AS "firstDomain", plan, currency,
            shops.created_at AS "createdAt", expires_at AS "expiresAt"
          FROM admin_sessions JOIN shops ON shops.id = shop_id
          WHERE hash = ${session} AND expires_at > ${now} AND removal_started_at IS NULL`,
      );
      if (row === undefined) return undefined;
      const { expiresAt, ...shop } = row;
      return { shop, expiresAt };
    },

    async renew(session, expiresAt, maxAgeMs) {
      const renewed = either(db, { sqlite: sql`min`, postgres: sql`least` });
      const end = sql`${renewed}(${expiresAt}, created_at + ${maxAgeMs})`;
      await db.run(sql`UPDATE admin_sessions SET expires_at = ${end} WHERE hash = ${session} AND expires_at < ${end}`);
    },

    async put(session, shopId, now, expiresAt) {
      await db.run(
        sql`INSERT INTO admin_sessions (hash, shop_id, created_at, expires_at)
          VALUES (${session}, ${shopId}, ${now}, ${expiresAt})
          ON CONFLICT (hash) DO UPDATE SET expires_at = excluded.expires_at`,
      );
    },

    async end(session) {
      await db.run(sql`DELETE FROM admin_sessions WHERE hash = ${session}`);
    },

    endAll: (shopId, now) =>
      db.transaction(function* () {
        // Removes links first. This waits for a sign-in that is using a link. So the next statement also removes the
        // session of that sign-in.
        yield* tx.run(sql`DELETE FROM admin_links WHERE shop_id = ${shopId}`);
        const ended = yield* tx.all<{ expiresAt: number }>(
          sql`DELETE FROM admin_sessions WHERE shop_id = ${shopId} RETURNING expires_at AS "expiresAt"`,
        );
        return ended.filter(({ expiresAt }) => expiresAt > now).length;
      }),

    ...addressStore(db),
  };
}

/** Creates the methods that keep the address of the running `serve`. Commands use this address in sign-in links. */
function addressStore(db: QuietDatabase): Pick<SessionStore, "address" | "noteAddress" | "forgetAddress"> {
  return {
    async address() {
      return (await db.get<{ value: string }>(sql`SELECT value FROM meta WHERE name = 'address'`))?.value;
    },

    async noteAddress(address) {
      await db.run(
        sql`INSERT INTO meta (name, value) VALUES ('address', ${address})
          ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      );
    },

    async forgetAddress(address) {
      await db.run(sql`DELETE FROM meta WHERE name = 'address' AND value = ${address}`);
    },
  };
}
