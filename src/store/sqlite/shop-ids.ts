import type { Database } from "bun:sqlite";

/** The ids of all shops, for work that goes shop by shop. */
export function shopIds(db: Database): number[] {
  return db
    .query<{ id: number }, []>("SELECT id FROM shops ORDER BY id")
    .all()
    .map(({ id }) => id);
}
