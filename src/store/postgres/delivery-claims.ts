import type { NewestSecret } from "../../domain/deliveries/delivery.ts";
import type { Claim, QueueClaim } from "../port/deliveries.ts";
import { columnArrays, type Queries } from "./database.ts";

/**
 * Locks the queues of shops, so that one process at a time counts leases and claims deliveries of a shop. Later
 * statements see the claims of earlier processes.
 * @returns the domains by shop id, without shops that are marked for removal
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
 * Claims due deliveries of shops whose queues are locked.
 * @param domains the result of `lockQueues`; other shops get no claims
 * @param claims `since` is the earliest due time of the deliveries to claim, see `DueSearch`
 */
export async function claimDeliveries(
  tx: Queries,
  domains: ReadonlyMap<number, string>,
  claims: readonly (QueueClaim & { lease: string; since: number })[],
  now: number,
  leaseUntil: number,
): Promise<Claim[]> {
  const asked = claims.filter(({ shopId }) => domains.has(shopId));
  if (asked.length === 0) return [];
  // `ARRAY(…)` of numbers keeps the planner from a scan of the whole table.
  const claimed = await tx.all<Omit<Claim, "domain" | "newestSecret"> & NewestSecret>(
    `WITH chosen AS MATERIALIZED (
       SELECT asked.shop_id, asked.lease, newest.version, newest.overlap_ends_at, ARRAY(
         SELECT number FROM deliveries
         WHERE shop_id = asked.shop_id AND kind = asked.kind AND claimable_at BETWEEN asked.since AND $7::bigint
         ORDER BY claimable_at, number LIMIT room.count FOR UPDATE SKIP LOCKED
       ) AS numbers
       FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[])
         AS asked (shop_id, kind, wanted, most, lease, since)
       CROSS JOIN LATERAL (
         SELECT greatest(0, CASE WHEN asked.most IS NULL THEN asked.wanted ELSE least(asked.wanted, asked.most - (
           SELECT count(*) FROM deliveries
           WHERE shop_id = asked.shop_id AND kind = asked.kind AND lease IS NOT NULL AND claimable_at > $7::bigint
         )) END) AS count
       ) AS room
       LEFT JOIN LATERAL (
         SELECT version, overlap_ends_at FROM webhook_secrets WHERE webhook_secrets.shop_id = asked.shop_id
         ORDER BY version DESC LIMIT 1
       ) AS newest ON true
     )
     UPDATE deliveries SET lease = chosen.lease, claimable_at = $8::bigint FROM chosen
     WHERE deliveries.shop_id = chosen.shop_id AND deliveries.number = ANY(chosen.numbers)
     RETURNING id, number::float8 AS number, kind, deliveries.shop_id::float8 AS "shopId", body, topic,
       test, secret_version::float8 AS "secretVersion", attempts::float8 AS attempts, round::float8 AS round,
       deliveries.lease, chosen.version::float8 AS version, chosen.overlap_ends_at::float8 AS "overlapEndsAt",
       (SELECT url FROM webhook_endpoints WHERE webhook_endpoints.shop_id = deliveries.shop_id) AS url`,
    [
      ...columnArrays(asked, ({ shopId, kind, count, limit = null, lease, since }) => [
        shopId,
        kind,
        count,
        limit,
        lease,
        since,
      ]),
      now,
      leaseUntil,
    ],
  );
  const indexes = new Map(asked.map(({ lease }, index) => [lease, index]));
  const indexOf = ({ lease }: Pick<Claim, "lease">) => indexes.get(lease) ?? 0;
  return claimed
    .map(({ version, overlapEndsAt, ...each }) => ({
      ...each,
      domain: domains.get(each.shopId) ?? "",
      newestSecret: { version, overlapEndsAt },
    }))
    .sort((a, b) => indexOf(a) - indexOf(b) || a.number - b.number);
}
