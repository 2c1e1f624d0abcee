import type { ContractRead, ExchangeRate } from "../../domain/platform/contract-read.ts";
import { afterRead, type ContractReadRow, readColumns, storedRate, storedReads } from "../engine/contract-reads.ts";
import type { StoredRead } from "../port/mirror.ts";
import { columnArrays, type Queries, type Writes } from "./database.ts";

/** Returns the stored readings of contracts, by gid. */
export async function contractReads(
  queries: Queries,
  shopId: number,
  contractGids: readonly string[],
): Promise<Map<string, StoredRead>> {
  if (contractGids.length === 0) return new Map();
  const rows = await queries.all<ContractReadRow>(
    `SELECT contract, began_at::float8 AS "beganAt", updated_at::float8 AS "updatedAt", orders, renewals,
       currency_pair AS "currencyPair", rate, rated_at::float8 AS "ratedAt" FROM contract_reads
     WHERE shop_id = $1::bigint AND contract = ANY($2::text[])`,
    [shopId, contractGids],
  );
  return storedReads(rows);
}

/**
 * Stores readings in the given order, in the transaction that stores the records.
 * @param before the result of `contractReads` for these contracts
 */
export async function noteReads(
  tx: Writes,
  shopId: number,
  reads: readonly ContractRead[],
  before: ReadonlyMap<string, StoredRead>,
): Promise<void> {
  if (reads.length === 0) return;
  const after = new Map<string, StoredRead>();
  for (const read of reads)
    after.set(read.contract, afterRead(read, after.get(read.contract) ?? before.get(read.contract)));
  await tx.run(
    `INSERT INTO contract_reads (shop_id, contract, began_at, updated_at, orders, renewals,
       currency_pair, rate, rated_at)
     SELECT $1::bigint, *
     FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
       $9::bigint[])
     ON CONFLICT (shop_id, contract) DO UPDATE SET began_at = excluded.began_at,
       updated_at = excluded.updated_at, orders = excluded.orders, renewals = excluded.renewals,
       currency_pair = excluded.currency_pair,
       rate = excluded.rate, rated_at = excluded.rated_at`,
    [shopId, ...columnArrays([...after], ([gid, read]) => [gid, ...readColumns(read)])],
  );
}

/** See `MirrorStore`. */
export async function newestRate(queries: Queries, shopId: number, pair: string): Promise<ExchangeRate | undefined> {
  const found = await queries.get<{ rate: string }>(
    `SELECT rate FROM contract_reads WHERE shop_id = $1::bigint AND currency_pair = $2::text AND rated_at IS NOT NULL
     ORDER BY rated_at DESC LIMIT 1`,
    [shopId, pair],
  );
  return found && storedRate(found);
}

/** See `MirrorStore`. */
export function contractsWithoutRate(
  queries: Queries,
  shopId: number,
  after: string,
  limit: number,
): Promise<{ contract: string; pair: string }[]> {
  return queries.all(
    `SELECT contract, currency_pair AS pair FROM contract_reads
     WHERE shop_id = $1::bigint AND contract > $2::text AND currency_pair IS NOT NULL AND rate IS NULL
     ORDER BY contract LIMIT $3::bigint`,
    [shopId, after, limit],
  );
}

/** Returns the gids of the contracts that have this order. */
export async function contractsOfOrder(queries: Queries, shopId: number, orderGid: string): Promise<string[]> {
  const rows = await queries.all<{ json: string }>(
    `SELECT json FROM subscriptions WHERE shop_id = $1::bigint AND id IN (
       SELECT substring(json FROM '"contractId":"(sub_[a-z2-7]{24})"') FROM orders
       WHERE shop_id = $1::bigint AND gid = $2::text
     )`,
    [shopId, orderGid],
  );
  return rows.map(({ json }) => (JSON.parse(json) as { shopifyId: string }).shopifyId);
}
