import type { DataRequest } from "../../domain/people/data-request.ts";
import type { DataRequestStore } from "../port/data-requests.ts";
import type { Database } from "./database.ts";

const COLUMNS = 'id, customer, requested_at::float8 AS "requestedAt", due_at::float8 AS "dueAt"';

/** Few people ask, so a shop's requests are read at once. */
export function dataRequestStore(db: Database): DataRequestStore {
  return {
    async open(shopId) {
      return db.all<DataRequest>(
        `SELECT ${COLUMNS} FROM data_requests WHERE shop_id = $1::bigint AND answered_at IS NULL
         ORDER BY data_requests.due_at, id`,
        [shopId],
      );
    },

    async answer(shopId, customer, now) {
      return db.run(
        `UPDATE data_requests SET answered_at = $3::bigint
         WHERE shop_id = $1::bigint AND customer = $2::text AND answered_at IS NULL`,
        [shopId, customer, now],
      );
    },

    async dueBefore(time) {
      const shops = await db.all<DataRequest & { shopId: number; domain: string; count: number }>(
        `SELECT shops.id::float8 AS "shopId", domain, due.* FROM shops CROSS JOIN LATERAL (
           SELECT ${COLUMNS}, (count(*) OVER ())::float8 AS count FROM data_requests
           WHERE shop_id = shops.id AND answered_at IS NULL AND due_at < $1::bigint
           ORDER BY data_requests.due_at, id LIMIT 1
         ) AS due WHERE removal_started_at IS NULL ORDER BY shops.id`,
        [time],
      );
      return shops.map(({ shopId, domain, count, ...first }) => ({ shop: { id: shopId, domain }, count, first }));
    },

    async forgetAnswered(before) {
      await db.run(
        `DELETE FROM data_requests USING shops
         WHERE shop_id = shops.id AND removal_started_at IS NULL AND answered_at < $1::bigint`,
        [before],
      );
    },
  };
}
