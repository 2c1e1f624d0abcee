import type { Queries } from "./database.ts";

/**
 * Those of the shops that exist and are not being removed. Until the transaction ends, no removal of them begins, and
 * no search for texts about people.
 */
export async function lockServed(tx: Queries, ids: Iterable<number>): Promise<Set<number>> {
  const shops = await tx.all<{ id: number }>(
    `SELECT id::float8 AS id FROM shops WHERE shops.id = ANY($1::bigint[]) AND removal_started_at IS NULL
     ORDER BY shops.id FOR KEY SHARE`,
    [[...new Set(ids)]],
  );
  return new Set(shops.map(({ id }) => id));
}
