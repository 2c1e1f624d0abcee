import type { SQL } from "drizzle-orm";
import type { FaultyShops, ShopCheckup } from "../port/checkup.ts";
import { type QuietDatabase, sql } from "./quiet-database.ts";
import { coveredUntil, JOIN_SYNCS } from "./syncs.ts";

const isOurs = sql`shops.removal_started_at IS NULL`;

/** Finds faults of shops with a few statements, whatever the number of shops. */
export function shopCheckup(db: QuietDatabase): ShopCheckup {
  /** @param rows a SELECT of `domain` and `reason` */
  async function faulty(rows: SQL): Promise<FaultyShops> {
    const found = await db.all<{ domain: string; reason: string | null; count: number }>(
      sql`SELECT domain, reason, count(*) OVER () AS count FROM (${rows}) AS faulty ORDER BY domain LIMIT 3`,
    );
    return { count: found[0]?.count ?? 0, shops: found.map(({ domain, reason }) => ({ domain, reason })) };
  }

  return {
    async firstShopAt() {
      return (await db.get<{ at: number | null }>(sql`SELECT min(created_at) AS at FROM shops`))?.at ?? null;
    },

    async connectedDomain() {
      const found = await db.get<{ domain: string }>(
        sql`SELECT domain FROM connections JOIN shops ON shops.id = shop_id
          WHERE trouble IS NULL AND ${isOurs} ORDER BY shop_id LIMIT 1`,
      );
      return found?.domain;
    },

    refused: () =>
      faulty(
        sql`SELECT domain, trouble AS reason FROM connections JOIN shops ON shops.id = shop_id
          WHERE trouble IS NOT NULL AND ${isOurs}`,
      ),

    expired: (now) =>
      faulty(
        sql`SELECT domain, NULL AS reason FROM connections JOIN shops ON shops.id = shop_id
          WHERE kind = 'token' AND expires_at <= ${now} AND ${isOurs}`,
      ),

    async grantedScopes() {
      const groups = await db.all<{ scopes: string; count: number; domain: string }>(
        sql`SELECT scopes, count(*) AS count, min(domain) AS domain FROM connections JOIN shops ON shops.id = shop_id
          WHERE ${isOurs} GROUP BY scopes ORDER BY count(*) DESC`,
      );
      return groups.map((group) => ({ ...group, scopes: group.scopes.split(",").filter((scope) => scope !== "") }));
    },

    unreconciled: (until, now) =>
      faulty(
        sql`SELECT domain, NULL AS reason FROM connections JOIN shops ON shops.id = connections.shop_id ${JOIN_SYNCS}
          WHERE trouble IS NULL AND connected_at <= ${until} AND ${isOurs}
            AND ${coveredUntil(now)} <= ${until}`,
      ),

    moving: () =>
      faulty(
        sql`SELECT domain, CASE WHEN state = 'arriving' THEN 'arriving' WHEN stop IS NULL THEN 'leaving'
            ELSE 'stopped' END AS reason
          FROM shop_moves WHERE shop_id IS NOT NULL`,
      ),

    async endpoints() {
      const found = await db.all<{ url: string; domain: string; count: number }>(
        sql`SELECT url, domain, count(*) OVER () AS count FROM (
            SELECT url, min(domain) AS domain, max(CASE WHEN alerts.shop_id IS NULL THEN 0 ELSE 1 END) AS failing
            FROM webhook_endpoints JOIN shops ON shops.id = webhook_endpoints.shop_id
            LEFT JOIN alerts ON alerts.shop_id = shops.id AND cause = 'endpoint' AND well_at IS NULL
            WHERE url IS NOT NULL AND ${isOurs} GROUP BY url) AS endpoints
          ORDER BY failing DESC, url LIMIT 200`,
      );
      return { count: found[0]?.count ?? 0, endpoints: found.map(({ url, domain }) => ({ url, domain })) };
    },
  };
}
