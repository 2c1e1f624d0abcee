import type { Database } from "bun:sqlite";
import type { NewestSecret } from "../../domain/deliveries/signing-secret.ts";
import { randomId } from "../../domain/ids.ts";
import type { Claim } from "../port/deliveries.ts";

/** A claim without the values that are equal for all claims of a shop. */
type ClaimedRow = Omit<Claim, "url" | "domain" | "newestSecret" | "test"> & { test: number };

/** @returns a function that claims up to `count` due deliveries of a shop, in the caller's transaction */
export function deliveryClaimer(
  db: Database,
  random: (bytes: number) => Uint8Array,
): (shopId: number, count: number, now: number, leaseUntil: number) => Claim[] {
  const claim = db.prepare<ClaimedRow, [string, number, number, number, number]>(
    `UPDATE deliveries SET lease = ?, claimable_at = ? WHERE number IN (
       SELECT number FROM (
         SELECT number, kind, first_value(kind) OVER (ORDER BY claimable_at, number) AS firstKind
         FROM deliveries INDEXED BY deliveries_due
         WHERE shop_id = +? AND claimable_at <= ? ORDER BY claimable_at, number LIMIT +?
       ) WHERE kind = firstKind
     ) RETURNING id, number, kind, shop_id AS shopId, body, topic, test, secret_version AS secretVersion, attempts,
       round, lease`,
  );
  const endpointOf = db.prepare<{ domain: string; url: string | null } & NewestSecret, [number]>(
    `SELECT domain, url, version, overlap_ends_at AS overlapEndsAt FROM shops
     LEFT JOIN webhook_endpoints ON webhook_endpoints.shop_id = shops.id
     LEFT JOIN webhook_secrets ON webhook_secrets.shop_id = shops.id
       AND version = (SELECT max(version) FROM webhook_secrets WHERE shop_id = shops.id)
     WHERE shops.id = +?`,
  );

  return (shopId, count, now, leaseUntil) => {
    const endpoint = endpointOf.get(shopId);
    if (endpoint === null) return [];
    const { domain, url, version, overlapEndsAt } = endpoint;
    const newestSecret = { version, overlapEndsAt };
    return claim
      .all(randomId("", random), leaseUntil, shopId, now, count)
      .map((claimed) => ({ ...claimed, test: claimed.test === 1, domain, url, newestSecret }));
  };
}
