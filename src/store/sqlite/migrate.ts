import type { Database } from "bun:sqlite";
import { SdsError } from "../../domain/error.ts";
import mirror from "./migrations/0001_mirror.sql" with { type: "text" };
import deliveries from "./migrations/0002_deliveries.sql" with { type: "text" };
import platform from "./migrations/0003_platform.sql" with { type: "text" };
import admin from "./migrations/0004_admin.sql" with { type: "text" };

/** Append only: a database in the field has run a prefix of this list, and PRAGMA user_version says how long a one. */
const MIGRATIONS: readonly string[] = [mirror, deliveries, platform, admin];

/** "sds1" in PRAGMA application_id tells our databases from anybody else's. */
const APPLICATION_ID = 0x73647331;

/**
 * Looks before anything is written whether this is a database of ours, and not of a newer program.
 * @throws SdsError `failed`
 */
export function checkVersion(db: Database, path: string): void {
  const version = pragma(db, "user_version");
  const application = pragma(db, "application_id");
  const tables = db.query<{ n: number }, []>("SELECT count(*) AS n FROM sqlite_schema").get()?.n ?? 0;
  if (application !== APPLICATION_ID && tables > 0) throw new SdsError("failed", `${path} is a database of another program`);
  if (version > MIGRATIONS.length) {
    throw new SdsError(
      "failed",
      `${path} was written by a newer sds (schema ${version}, this one knows ${MIGRATIONS.length}): install that version or a later one; nothing was changed`,
    );
  }
}

/** Brings the schema up to date in one transaction; several programs may try at once. */
export function migrate(db: Database): void {
  if (pragma(db, "user_version") === MIGRATIONS.length) return;
  db.transaction(() => {
    for (const migration of MIGRATIONS.slice(pragma(db, "user_version"))) db.run(migration);
    db.run(`PRAGMA application_id = ${APPLICATION_ID}`);
    db.run(`PRAGMA user_version = ${MIGRATIONS.length}`);
  }).immediate();
}

function pragma(db: Database, name: "user_version" | "application_id"): number {
  return db.query<Record<string, number>, []>(`PRAGMA ${name}`).get()?.[name] ?? 0;
}
