import type { Database } from "bun:sqlite";
import type { DataRequest } from "../../domain/people/data-request.ts";

/** A function that adds a request in the caller's transaction, unless it is there already. */
export function dataRequestInserter(db: Database): (shopId: number, request: DataRequest) => void {
  const insert = db.prepare(
    "INSERT OR IGNORE INTO data_requests (shop_id, id, customer, requested_at, due_at) VALUES (?, ?, ?, ?, ?)",
  );
  return (shopId, { id, customer, requestedAt, dueAt }) => {
    insert.run(shopId, id, customer, requestedAt, dueAt);
  };
}
