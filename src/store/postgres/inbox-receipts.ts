import { dueAtOf, type Receipt } from "../port/inbox.ts";
import { columnArrays, type Database } from "./database.ts";

/**
 * Stores new platform webhooks and numbers them in the given order. Uses one statement, so it needs one round trip. If
 * another transaction is marking a shop for removal, `FOR KEY SHARE` waits for that transaction.
 * @returns for each receipt whether it is new
 */
export async function receiveWebhooks(db: Database, receipts: readonly Receipt[], now: number): Promise<boolean[]> {
  const first = withoutRepetitions(receipts);
  if (first.length === 0) return [];
  const taken = await db.all<{ place: number }>(
    `WITH served AS MATERIALIZED (
       SELECT id FROM shops WHERE id = ANY($1::bigint[]) AND removal_started_at IS NULL ORDER BY id FOR KEY SHARE
     ), given AS MATERIALIZED (
       SELECT given.* FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::boolean[],
         $8::text[], $9::bigint[], $10::bigint[], $11::text[])
         AS given (place, shop_id, webhook_id, topic, subject, needs_platform, body, triggered_at, due_at, error)
       JOIN served ON served.id = given.shop_id
     ), remembered AS (
       INSERT INTO platform_webhooks (shop_id, id, received_at)
       SELECT shop_id, webhook_id, $12::bigint FROM given WHERE webhook_id IS NOT NULL ORDER BY shop_id, webhook_id
       ON CONFLICT DO NOTHING RETURNING shop_id, id
     ), taken AS MATERIALIZED (
       SELECT given.* FROM given LEFT JOIN remembered
         ON remembered.shop_id = given.shop_id AND remembered.id = given.webhook_id
       WHERE given.webhook_id IS NULL OR remembered.id IS NOT NULL
     ), added AS (
       INSERT INTO inbox
         (shop_id, topic, subject, needs_platform, body, triggered_at, received_at, status, next_attempt_at, error)
       SELECT shop_id, topic, subject, needs_platform, body, triggered_at, $12::bigint, 'waiting', due_at, error
       FROM taken ORDER BY place
     )
     SELECT place::float8 AS place FROM taken`,
    [
      [...new Set(first.map(({ receipt }) => receipt.shopId))],
      ...columnArrays(first, ({ receipt, place }) => {
        const { shopId, webhookId, topic, subject, needsPlatform, body, triggeredAt, error = null } = receipt;
        const dueAt = dueAtOf(receipt, now);
        return [place, shopId, webhookId, topic, subject, needsPlatform, body, triggeredAt, dueAt, error];
      }),
      now,
    ],
  );
  const places = new Set(taken.map(({ place }) => place));
  return receipts.map((_, place) => places.has(place));
}

/** Removes receipts that repeat a webhook. @returns the remaining receipts with their indexes */
function withoutRepetitions(receipts: readonly Receipt[]): { receipt: Receipt; place: number }[] {
  const seen = new Set<string>();
  return receipts
    .map((receipt, place) => ({ receipt, place }))
    .filter(({ receipt: { shopId, webhookId } }) => {
      if (webhookId === null) return true;
      const key = `${shopId} ${webhookId}`;
      const isNew = !seen.has(key);
      seen.add(key);
      return isNew;
    });
}
