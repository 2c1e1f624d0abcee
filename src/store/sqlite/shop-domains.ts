import { Database } from "bun:sqlite";
import { databasePath, hasDatabase } from "./data-files.ts";

const MOST = 1_000;

/**
 * Lists the shops of a data folder for completions, without an upgrade or a wait. Returns an empty list if the folder
 * has no data, or if the database cannot be read.
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
