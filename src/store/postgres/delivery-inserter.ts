import type { NewDelivery } from "../../domain/deliveries/event-queue.ts";
import type { Queries } from "./database.ts";
import { joinedTexts, splitTexts } from "./text-lists.ts";

/**
 * Inserts new deliveries of a shop, due now, in their order, inside the caller's transaction.
 * @param now epoch milliseconds
 */
export async function insertDeliveries(
  tx: Queries,
  shopId: number,
  deliveries: readonly NewDelivery[],
  now: number,
): Promise<void> {
  if (deliveries.length === 0) return;
  await tx.run(
    `INSERT INTO deliveries
       (shop_id, id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
     SELECT $1::bigint, id, kind, topic, test, body, secret_version, 'pending', $2::bigint, $2::bigint, $2::bigint
     FROM unnest($3::text[], $4::text[], $5::text[], $6::boolean[], ${splitTexts(7)}, $8::bigint[]) WITH ORDINALITY
       AS new (id, kind, topic, test, body, secret_version, place)
     ORDER BY place`,
    [
      shopId,
      now,
      deliveries.map(({ id }) => id),
      deliveries.map(({ kind }) => kind),
      deliveries.map(({ topic }) => topic),
      deliveries.map(({ isTest }) => isTest),
      joinedTexts(deliveries.map(({ body }) => body)),
      deliveries.map(({ secretVersion }) => secretVersion),
    ],
  );
}
