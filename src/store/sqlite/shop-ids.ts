import type { Database } from "bun:sqlite";

/** Returns a function that reads the ids of shops that are being removed. The set is almost always empty. */
export function removingShopIds(db: Database): () => Set<number> {
  const removing = db.prepare<{ id: number }, []>("SELECT id FROM shops WHERE removal_started_at IS NOT NULL");
  return () => new Set(removing.all().map(({ id }) => id));
}

/**
 * Returns a function that tells whether a shop exists and is not being removed. It is needed because a removal may
 * begin after the caller found the shop.
 */
export function shopCheck(db: Database): (shopId: number) => boolean {
  const find = db.prepare<unknown, [number]>("SELECT 1 FROM shops WHERE id = ? AND removal_started_at IS NULL");
  return (shopId) => find.get(shopId) !== null;
}
