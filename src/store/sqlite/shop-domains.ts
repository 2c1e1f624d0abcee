import { Database } from "bun:sqlite";
import { databasePath, hasDatabase } from "./data-files.ts";

const MOST = 1_000;

/**
 * Lists the shops of a data folder for completions: without an upgrade, and without a wait. A folder without data, or
 * with a database that cannot be read, has none.
 */
export function readShopDomains(folder: string): string[] {
  try {
    if (!hasDatabase(folder)) return [];
    using db = new Database(databasePath(folder), { readonly: true });
    const query = db.query<{ domain: string }, [number]>("SELECT domain FROM shops ORDER BY domain LIMIT ?");
    return query.all(MOST).map(({ domain }) => domain);
  } catch {
    return [];
  }
}
