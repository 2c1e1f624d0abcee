import tables from "./migrations/0001_tables.sql" with { type: "text" };
import changesAndOverlap from "./migrations/0002_changes_and_overlap.sql" with { type: "text" };
import noLargeBodies from "./migrations/0003_no_large_bodies.sql" with { type: "text" };

/**
 * Append only: a database in the field has run the first ones of this list; the row `schema` of its table meta says how
 * many. Several nodes may run beside each other during an upgrade, one with this list and one that lacks its last
 * entry. So each entry only adds, and what the older program needs is removed an entry later.
 */
export const MIGRATIONS: readonly string[] = [tables, changesAndOverlap, noLargeBodies];
