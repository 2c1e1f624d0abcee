import type { StyledShop, StyleStore, WidgetStyle } from "../port/styles.ts";
import { type QuietDatabase, sql } from "./quiet-database.ts";
import { idByDomain } from "./shops.ts";

export function styleStore(db: QuietDatabase): StyleStore {
  const byDomain = db.prepare<StyledShop>(
    sql`SELECT id AS "shopId", plan, hash FROM shops LEFT JOIN widget_styles ON shop_id = id
      WHERE id = ${idByDomain} AND removal_started_at IS NULL`,
  );

  return {
    shopOf: (domain) => byDomain(domain, domain),

    async find(shopId) {
      return db.get<WidgetStyle>(sql`SELECT source, hash FROM widget_styles WHERE shop_id = ${shopId}`);
    },

    async set(shopId, { source, hash }) {
      await db.run(
        sql`INSERT INTO widget_styles (shop_id, source, hash) VALUES (${shopId}, ${source}, ${hash})
          ON CONFLICT (shop_id) DO UPDATE SET source = excluded.source, hash = excluded.hash
          WHERE widget_styles.hash <> excluded.hash`,
      );
    },

    async clear(shopId) {
      return (await db.run(sql`DELETE FROM widget_styles WHERE shop_id = ${shopId}`)) > 0;
    },
  };
}
