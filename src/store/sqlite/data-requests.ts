import type { Database } from "bun:sqlite";
import type { DataRequest } from "../../domain/people/data-request.ts";
import type { DataRequestStore } from "../port/data-requests.ts";
import { shopIds } from "./shop-ids.ts";

/** Few people ask, so a shop's requests are read at once. */
export function dataRequestStore(db: Database): DataRequestStore {
  const open = db.prepare<DataRequest, [number]>(
    `SELECT id, customer, requested_at AS requestedAt, due_at AS dueAt FROM data_requests
     WHERE shop_id = +? AND answered_at IS NULL ORDER BY due_at, id`,
  );
  const answer = db.prepare(
    "UPDATE data_requests SET answered_at = ? WHERE shop_id = +? AND customer = ? AND answered_at IS NULL",
  );
  const domain = db.prepare<{ domain: string }, [number]>("SELECT domain FROM shops WHERE id = ?");
  const forget = db.prepare("DELETE FROM data_requests WHERE shop_id = +? AND answered_at < ?");

  return {
    async open(shopId) {
      return open.all(shopId);
    },

    async answer(shopId, customer, now) {
      return answer.run(now, shopId, customer).changes;
    },

    async dueBefore(time) {
      return shopIds(db).flatMap((id) => {
        const due = open.all(id).filter(({ dueAt }) => dueAt < time);
        const [first] = due;
        return first === undefined
          ? []
          : [{ shop: { id, domain: domain.get(id)?.domain ?? "" }, count: due.length, first }];
      });
    },

    async forgetAnswered(before) {
      for (const shopId of shopIds(db)) forget.run(shopId, before);
    },
  };
}

/** A function that adds a request in the caller's transaction, unless it is there already. */
export function dataRequestInserter(db: Database): (shopId: number, request: DataRequest) => void {
  const insert = db.prepare(
    "INSERT OR IGNORE INTO data_requests (shop_id, id, customer, requested_at, due_at) VALUES (?, ?, ?, ?, ?)",
  );
  return (shopId, { id, customer, requestedAt, dueAt }) => {
    insert.run(shopId, id, customer, requestedAt, dueAt);
  };
}
