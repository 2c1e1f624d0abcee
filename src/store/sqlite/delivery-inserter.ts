import type { Database } from "bun:sqlite";
import type { NewDelivery } from "../../domain/deliveries/event-queue.ts";

/** Inserts a new delivery, due now, inside the caller's transaction. @param now epoch milliseconds */
export function deliveryInserter(db: Database): (shopId: number, delivery: NewDelivery, now: number) => void {
  const insert = db.prepare(
    `INSERT INTO deliveries
       (id, shop_id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?)`,
  );
  return (shopId, { id, kind, topic, isTest, body, secretVersion }, now) => {
    insert.run(id, shopId, kind, topic, isTest, body, secretVersion, now, now, now);
  };
}
