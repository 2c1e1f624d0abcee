import type { NewestSecret } from "../../domain/deliveries/signing-secret.ts";
import type { Claim } from "../port/deliveries.ts";
import type { Queries } from "./database.ts";

/** What is to be claimed for one shop. */
interface Share {
  shopId: number;
  /** How many, at most. */
  share: number;
  /** How many may be under a lease at once, in all processes together; null without a limit. */
  limit: number | null;
  lease: string;
}

/**
 * Locks the queues of shops, so that one process at a time counts and claims in them. Every statement after this one
 * sees what the processes before claimed.
 * @returns the domains of those that are not being removed, by id
 */
export async function lockQueues(tx: Queries, shopIds: readonly number[]): Promise<Map<number, string>> {
  if (shopIds.length === 0) return new Map();
  const shops = await tx.all<{ id: number; domain: string }>(
    `SELECT id::float8 AS id, domain FROM shops WHERE shops.id = ANY($1::bigint[]) AND removal_started_at IS NULL
     ORDER BY shops.id FOR NO KEY UPDATE`,
    [shopIds],
  );
  return new Map(shops.map(({ id, domain }) => [id, domain]));
}

/**
 * Claims due deliveries of shops whose queues are locked. All of one shop have the kind that is due longest.
 * @param domains what `lockQueues` returned; other shops get nothing
 */
export async function claimDeliveries(
  tx: Queries,
  domains: ReadonlyMap<number, string>,
  shares: readonly Share[],
  now: number,
  leaseUntil: number,
): Promise<Claim[]> {
  const asked = shares.filter(({ shopId }) => domains.has(shopId));
  if (asked.length === 0) return [];
  // The arrays keep the planner from expecting thousands of numbers and reading the whole table.
  const claimed = await tx.all<Omit<Claim, "domain" | "newestSecret"> & NewestSecret>(
    `WITH chosen AS MATERIALIZED (
       SELECT asked.shop_id, asked.lease, newest.version, newest.overlap_ends_at, ARRAY(
         SELECT number FROM (
           SELECT number, kind, first_value(kind) OVER (ORDER BY claimable_at, number) AS first_kind FROM (
             SELECT number, kind, claimable_at FROM deliveries
             WHERE shop_id = asked.shop_id AND claimable_at <= $5::bigint
             ORDER BY claimable_at, number LIMIT room.count FOR UPDATE SKIP LOCKED
           ) AS due
         ) AS due WHERE kind = first_kind
       ) AS numbers
       FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) AS asked (shop_id, share, most, lease)
       CROSS JOIN LATERAL (
         SELECT greatest(0, CASE WHEN asked.most IS NULL THEN asked.share ELSE least(asked.share, asked.most - (
           SELECT count(*) FROM deliveries
           WHERE shop_id = asked.shop_id AND lease IS NOT NULL AND claimable_at > $5::bigint
         )) END) AS count
       ) AS room
       LEFT JOIN LATERAL (
         SELECT version, overlap_ends_at FROM webhook_secrets WHERE webhook_secrets.shop_id = asked.shop_id
         ORDER BY version DESC LIMIT 1
       ) AS newest ON true
     )
     UPDATE deliveries SET lease = chosen.lease, claimable_at = $6::bigint FROM chosen
     WHERE deliveries.shop_id = chosen.shop_id AND deliveries.number = ANY(chosen.numbers)
     RETURNING id, number::float8 AS number, kind, deliveries.shop_id::float8 AS "shopId", body, topic,
       test, secret_version::float8 AS "secretVersion", attempts::float8 AS attempts, round::float8 AS round,
       deliveries.lease, chosen.version::float8 AS version, chosen.overlap_ends_at::float8 AS "overlapEndsAt",
       (SELECT url FROM webhook_endpoints WHERE webhook_endpoints.shop_id = deliveries.shop_id) AS url`,
    [
      asked.map(({ shopId }) => shopId),
      asked.map(({ share }) => share),
      asked.map(({ limit }) => limit),
      asked.map(({ lease }) => lease),
      now,
      leaseUntil,
    ],
  );
  const places = new Map(asked.map(({ shopId }, place) => [shopId, place]));
  const placeOf = ({ shopId }: { shopId: number }) => places.get(shopId) ?? 0;
  return claimed
    .map(({ version, overlapEndsAt, ...each }) => ({
      ...each,
      domain: domains.get(each.shopId) ?? "",
      newestSecret: { version, overlapEndsAt },
    }))
    .sort((a, b) => placeOf(a) - placeOf(b) || a.number - b.number);
}
