import type { DataRequest } from "../../domain/people/data-request.ts";
import type { DataRequestStore } from "../port/data-requests.ts";
import { type QuietDatabase, sql } from "./quiet-database.ts";

const COLUMNS = sql`data_requests.id, customer, requested_at AS "requestedAt", due_at AS "dueAt"`;

/** Makes the store. Data requests are few, so one query reads all due requests. */
export function dataRequestStore(db: QuietDatabase): DataRequestStore {
  return {
    async open(shopId) {
      return db.all<DataRequest>(
        sql`SELECT ${COLUMNS} FROM data_requests WHERE shop_id = ${shopId} AND answered_at IS NULL ORDER BY due_at, id`,
      );
    },

    async answer(shopId, customer, now) {
      return db.run(
        sql`UPDATE data_requests SET answered_at = ${now}
          WHERE shop_id = ${shopId} AND customer = ${customer} AND answered_at IS NULL`,
      );
    },

    async dueBefore(time) {
      const due = await db.all<DataRequest & { shopId: number; domain: string }>(
        sql`SELECT shops.id AS "shopId", domain, ${COLUMNS} FROM shops JOIN data_requests ON shop_id = shops.id
          WHERE removal_started_at IS NULL AND answered_at IS NULL AND due_at < ${time}
          ORDER BY shops.id, due_at, data_requests.id`,
      );
      const byShop = Map.groupBy(due, ({ shopId }) => shopId);
      return Array.from(byShop.values(), (requests) => {
        const [{ shopId, domain, ...first }] = requests as [(typeof due)[number]];
        return { shop: { id: shopId, domain }, count: requests.length, first };
      });
    },

    async forgetAnswered(before) {
      await db.run(
        sql`DELETE FROM data_requests WHERE answered_at < ${before}
          AND shop_id IN (SELECT id FROM shops WHERE removal_started_at IS NULL)`,
      );
    },
  };
}
