import type { Database } from "bun:sqlite";
import { dueAtOf, type Receipt } from "../port/inbox.ts";
import { shopCheck } from "./shop-ids.ts";

/** @returns a function that stores new webhooks in one transaction, and says for each whether it is new */
export function webhookReceiver(db: Database): (receipts: readonly Receipt[], now: number) => boolean[] {
  const remember = db.prepare("INSERT OR IGNORE INTO platform_webhooks (shop_id, id, received_at) VALUES (?, ?, ?)");
  const insert = db.prepare(
    `INSERT INTO inbox
       (shop_id, topic, subject, needs_platform, body, triggered_at, received_at, status, next_attempt_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?)`,
  );
  const isServed = shopCheck(db);

  function receive(receipt: Receipt, now: number): boolean {
    const { shopId, webhookId, topic, subject, needsPlatform, body, triggeredAt } = receipt;
    if (webhookId !== null && remember.run(shopId, webhookId, now).changes === 0) return false;
    insert.run(shopId, topic, subject, needsPlatform, body, triggeredAt, now, dueAtOf(receipt, now));
    return true;
  }

  return (receipts, now) =>
    db
      .transaction(() => {
        // The removal of a shop may have begun since the caller looked it up.
        const shops = new Set([...new Set(receipts.map(({ shopId }) => shopId))].filter(isServed));
        return receipts.map((receipt) => shops.has(receipt.shopId) && receive(receipt, now));
      })
      .immediate();
}
