import type { StyledShop, StyleStore, WidgetStyle } from "../port/styles.ts";
import { parameter, type QuietDatabase, sql } from "./quiet-database.ts";

export function styleStore(db: QuietDatabase): StyleStore {
  const byDomain = db.prepare<StyledShop>(
    sql`SELECT id AS "shopId", plan, hash FROM shops LEFT JOIN widget_styles ON shop_id = id
      WHERE domain = ${parameter("text")} AND removal_started_at IS NULL`,
  );

  return {
    shopOf: (domain) => byDomain(domain),

    async find(shopId) {
      return db.get<WidgetStyle>(sql`SELECT source, css, hash FROM widget_styles WHERE shop_id = ${shopId}`);
    },

    async set(shopId, { source, css, hash }) {
      await db.run(
        sql`INSERT INTO widget_styles (shop_id, source, css, hash) VALUES (${shopId}, ${source}, ${css}, ${hash})
          ON CONFLICT (shop_id) DO UPDATE SET source = excluded.source, css = excluded.css, hash = excluded.hash`,
      );
    },

    async clear(shopId) {
      return (await db.run(sql`DELETE FROM widget_styles WHERE shop_id = ${shopId}`)) > 0;
    },
  };
}
