import type { Database } from "bun:sqlite";
import type { ContractRead, ExchangeRate } from "../../domain/platform/contract-read.ts";
import { afterRead, type ContractReadRow, readColumns, storedRate, storedReads } from "../engine/contract-reads.ts";
import type { StoredRead } from "../port/mirror.ts";

export function contractReads(db: Database) {
  const find = db.prepare<ContractReadRow, [number, string]>(
    `SELECT contract, began_at AS beganAt, updated_at AS updatedAt, orders, renewals,
       currency_pair AS currencyPair, rate, rated_at AS ratedAt FROM contract_reads
     WHERE shop_id = +? AND contract IN (SELECT value FROM json_each(+?))`,
  );
  const write = db.prepare(
    `INSERT INTO contract_reads (shop_id, contract, began_at, updated_at, orders, renewals,
       currency_pair, rate, rated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (shop_id, contract) DO UPDATE SET began_at = excluded.began_at,
       updated_at = excluded.updated_at, orders = excluded.orders, renewals = excluded.renewals,
       currency_pair = excluded.currency_pair,
       rate = excluded.rate, rated_at = excluded.rated_at`,
  );
  const newest = db.prepare<{ rate: string }, [number, string]>(
    `SELECT rate FROM contract_reads WHERE shop_id = +? AND currency_pair = +? AND rated_at IS NOT NULL
     ORDER BY rated_at DESC LIMIT 1`,
  );
  const withoutRate = db.prepare<{ contract: string; pair: string }, [number, string, number]>(
    `SELECT contract, currency_pair AS pair FROM contract_reads INDEXED BY contract_reads_without_rate
     WHERE shop_id = +? AND contract > +? AND currency_pair IS NOT NULL AND rate IS NULL ORDER BY contract LIMIT +?`,
  );
  const contractsOf = db.prepare<{ gid: string }, [number, string, number]>(
    `SELECT DISTINCT json_extract(json, '$.shopifyId') AS gid FROM subscriptions
     WHERE id IN (
       SELECT json_extract(json, '$.contractId') FROM orders INDEXED BY orders_by_gid
       WHERE shop_id = +? AND json_extract(json, '$.shopifyId') = +?
     ) AND shop_id = +?`,
  );

  function of(shopId: number, contractGids: readonly string[]): Map<string, StoredRead> {
    return storedReads(find.all(shopId, JSON.stringify(contractGids)));
  }

  return {
    of,
    newestRate(shopId: number, pair: string): ExchangeRate | undefined {
      const found = newest.get(shopId, pair);
      return found === null ? undefined : storedRate(found);
    },
    withoutRate: (shopId: number, after: string, limit: number) => withoutRate.all(shopId, after, limit),
    contractsOfOrder: (shopId: number, orderGid: string): string[] =>
      contractsOf.all(shopId, orderGid, shopId).map(({ gid }) => gid),
    /** Stores a reading. Call this in the transaction of the reading's records. */
    note(shopId: number, read: ContractRead): void {
      const after = afterRead(read, of(shopId, [read.contract]).get(read.contract));
      write.run(shopId, read.contract, ...readColumns(after));
    },
  };
}
