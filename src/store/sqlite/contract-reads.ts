import type { Database } from "bun:sqlite";
import type { ContractRead } from "../../domain/decide/commit.ts";
import { afterRead, type ContractReadRow, storedReads } from "../engine/contract-reads.ts";
import type { StoredRead } from "../port/mirror.ts";

export function contractReads(db: Database) {
  const find = db.prepare<ContractReadRow, [number, string]>(
    `SELECT contract, began_at AS beganAt, orders FROM contract_reads
     WHERE shop_id = +? AND contract IN (SELECT value FROM json_each(+?))`,
  );
  const write = db.prepare(
    `INSERT INTO contract_reads (shop_id, contract, began_at, orders) VALUES (?, ?, ?, ?)
     ON CONFLICT (shop_id, contract) DO UPDATE SET began_at = excluded.began_at, orders = excluded.orders`,
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
    contractsOfOrder: (shopId: number, orderGid: string): string[] =>
      contractsOf.all(shopId, orderGid, shopId).map(({ gid }) => gid),
    /** Stores a reading. Call this in the transaction of the reading's records. */
    note(shopId: number, read: ContractRead): void {
      const { beganAt, orders } = afterRead(read, of(shopId, [read.contract]).get(read.contract));
      write.run(shopId, read.contract, beganAt, JSON.stringify(orders));
    },
  };
}
