import type { ShopChanges } from "../../domain/decide/commit.ts";
import type { StoredState } from "../engine/mirrored-rows.ts";
import { columnArrays, pipeline, type Queries, type Writes } from "./database.ts";

type CountNames = "changeCount" | "spanNumber" | "previousSpanCount" | "customers" | "subscriptions" | "orders";
type Settings = Omit<StoredState, CountNames>;
type Counts = Pick<StoredState, CountNames>;

/**
 * Locks shops for changes of their mirrors until the transaction ends. First locks the counters of the shops, then the
 * rows of the shops, each in ascending order of ids. So commits of a shop run one after the other, and change numbers
 * follow the order of commits. No removal of these shops can begin. A removal locks in the opposite order. This causes
 * no deadlock, because this function does not lock shops that are marked for removal. All statements are sent at once.
 * @returns the states of existing shops, without shops that are marked for removal
 */
export async function lockShops(tx: Queries, ids: readonly number[]): Promise<Map<number, StoredState>> {
  const [counts, settings] = await pipeline([
    tx.all<Counts & { id: number }>(
      `SELECT shop_id::float8 AS id, change_count::float8 AS "changeCount",
         change_span::float8 AS "spanNumber", noted_count::float8 AS "previousSpanCount",
         customer_count::float8 AS customers, subscription_count::float8 AS subscriptions, order_count::float8 AS orders
       FROM shop_changes WHERE shop_id = ANY($1::bigint[]) ORDER BY shop_id FOR NO KEY UPDATE`,
      [ids],
    ),
    tx.all<Settings & { id: number }>(
      `SELECT shops.id::float8 AS id, plan, url, topics, triggers,
         (SELECT max(version) FROM webhook_secrets WHERE shop_id = shops.id)::float8 AS "secretVersion",
         EXISTS (SELECT 1 FROM connections WHERE shop_id = shops.id) AS "isConnected"
       FROM shops LEFT JOIN LATERAL (
         SELECT url, topics FROM webhook_endpoints WHERE shop_id = shops.id LIMIT 1
       ) AS endpoints ON true
       WHERE shops.id = ANY($1::bigint[]) AND removal_started_at IS NULL ORDER BY shops.id FOR KEY SHARE OF shops`,
      [ids],
    ),
  ]);
  const countsOf = new Map(counts.map(({ id, ...each }) => [id, each]));
  return new Map(
    settings.flatMap(({ id, ...each }) => {
      const own = countsOf.get(id);
      return own === undefined ? [] : [[id, { ...each, ...own }] as const];
    }),
  );
}

/** Writes the counters of shops with changed rows. */
export async function writeCounts(tx: Writes, changes: readonly ShopChanges[]): Promise<void> {
  if (changes.length === 0) return;
  // The rows exist, so an UPDATE would be enough. But only an upsert makes the server find each row by its key.
  await tx.run(
    `INSERT INTO shop_changes
       (shop_id, change_count, noted_count, change_span, customer_count, subscription_count, order_count)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
       $6::bigint[])
     ON CONFLICT (shop_id) DO UPDATE SET change_count = excluded.change_count,
       noted_count = excluded.noted_count, change_span = excluded.change_span,
       customer_count = excluded.customer_count, subscription_count = excluded.subscription_count,
       order_count = excluded.order_count`,
    columnArrays(changes, ({ shop, changeCount, spanNumber, counts: { customers, subscriptions, orders } }) => [
      shop.id,
      changeCount,
      spanNumber,
      customers,
      subscriptions,
      orders,
    ]),
  );
}

/**
 * Stores the number of changes before each new span. If `sds copy` stored a lower number for the span, that number
 * stays (copy/tables.ts).
 */
export async function noteSpans(tx: Writes, changes: readonly ShopChanges[]): Promise<void> {
  const noted = changes.filter(({ countBeforeSpan }) => countBeforeSpan !== null);
  if (noted.length === 0) return;
  await tx.run(
    `INSERT INTO change_spans (shop_id, span, number)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
     ON CONFLICT (shop_id, span) DO UPDATE SET number = least(change_spans.number, excluded.number)`,
    columnArrays(noted, ({ shop, spanNumber, countBeforeSpan }) => [shop.id, spanNumber, countBeforeSpan]),
  );
}
