import { SdsError } from "../../domain/error.ts";
import type { Database, Queries } from "./database.ts";
import { sqlState } from "./errors.ts";
import { MIGRATIONS } from "./migrations.ts";

/** "sds1": marks the tables of this program. */
const APPLICATION = "sds1";
/** Any number, always the same: it names the lock that one upgrade at a time has. */
const UPGRADE_LOCK = 0x73647331;
/** A program can use a schema that is one version newer, so that nodes are replaced one by one. */
const NEWER_VERSIONS = 1;

/**
 * The version of a database's schema; 0 for one without tables.
 * @param name of the database, for messages
 * @throws SdsError `failed` for a database of another program or of one that is too new
 */
export async function checkVersion(queries: Queries, name: string): Promise<number> {
  const tables = await queries.all<{ name: string }>(
    `SELECT relname::text AS name FROM pg_class
     WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) AND relkind IN ('r', 'p')`,
  );
  if (tables.length === 0) return 0;
  const isOurs = tables.some((table) => table.name === "meta") && (await readApplication(queries)) === APPLICATION;
  if (!isOurs) throw new SdsError("failed", `${name} has tables of another program: give sds a database of its own`);
  const version = Number(await readMeta(queries, "schema"));
  if (version > MIGRATIONS.length + NEWER_VERSIONS) {
    throw new SdsError(
      "failed",
      `${name} was written by a newer sds (schema ${version}, this one knows ${MIGRATIONS.length}): ` +
        "install that version or a later one; nothing was changed",
    );
  }
  return version;
}

/** Which program has made the tables; undefined where it is not ours, whose table has these columns. */
async function readApplication(queries: Queries): Promise<string | undefined> {
  try {
    return await readMeta(queries, "application");
  } catch (thrown) {
    if (["42703", "42883"].includes(sqlState(thrown))) return undefined;
    throw thrown;
  }
}

/**
 * Brings the schema up to date in one transaction. Of several programs that try at once, one does it.
 * @param db takes longer than usual: an upgrade may need minutes, and the others wait for it
 */
export async function migrate(db: Database, name: string, migrations: readonly string[] = MIGRATIONS): Promise<void> {
  await db.transaction(async (tx) => {
    // It ends with the transaction. The next program then finds the schema as this one left it.
    await tx.run("SELECT pg_advisory_xact_lock($1::bigint)", [UPGRADE_LOCK]);
    const version = await checkVersion(tx, name);
    if (version >= migrations.length) return;
    for (const script of migrations.slice(version)) await tx.script(script);
    await writeMeta(tx, "application", APPLICATION);
    await writeMeta(tx, "schema", String(migrations.length));
  });
}

/** @throws SdsError `unavailable` if a program that is too new has changed the schema since this one began */
export async function checkVersionStays(queries: Queries): Promise<void> {
  const version = Number(await readMeta(queries, "schema"));
  if (version <= MIGRATIONS.length + NEWER_VERSIONS) return;
  throw new SdsError(
    "unavailable",
    `The database was upgraded by a newer sds (schema ${version}, this one knows ${MIGRATIONS.length}): ` +
      "stop this program and start that version.",
  );
}

export async function readMeta(queries: Queries, name: string): Promise<string | undefined> {
  return (await queries.get<{ value: string }>("SELECT value FROM meta WHERE name = $1::text", [name]))?.value;
}

export async function writeMeta(queries: Queries, name: string, value: string): Promise<void> {
  await queries.run(
    `INSERT INTO meta (name, value) VALUES ($1::text, $2::text)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    [name, value],
  );
}
