import { SdsError } from "../../domain/error.ts";
import { COPIED_TABLES, KEPT_BY_TRIGGERS, NOT_COPIED } from "../copy/tables.ts";
import type { Queries } from "./database.ts";
import { sqlState } from "./errors.ts";
import { MIGRATIONS } from "./migrations.ts";
import { lackedRight } from "./start-errors.ts";

/** Value of the row `application` of `meta`. It marks tables of this program. */
export const APPLICATION = "sds1";
const OWN_TABLES = new Set([...COPIED_TABLES.map((table) => table.name), ...NOT_COPIED, ...KEPT_BY_TRIGGERS]);
/** A program accepts a schema that is one version newer, for rolling upgrades. */
const NEWER_VERSIONS = 1;

/**
 * Returns the schema version; 0 if there are no tables.
 * @param name the database's name in messages
 * @throws SdsError `failed` for another program's schema, a schema that is too new, or a missing right
 */
export async function checkVersion(queries: Queries, name: string): Promise<number> {
  const tables = await queries.all<{ name: string; isUsable: boolean }>(
    `SELECT relname::text AS name, has_table_privilege(pg_class.oid, 'SELECT')
       AND has_table_privilege(pg_class.oid, 'INSERT') AND has_table_privilege(pg_class.oid, 'UPDATE')
       AND has_table_privilege(pg_class.oid, 'DELETE') AS "isUsable"
     FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) AND relkind IN ('r', 'p')`,
  );
  if (tables.length === 0) {
    const { schema } = (await queries.get<{ schema: string | null }>("SELECT current_schema()::text AS schema")) ?? {};
    if (schema === null) throw new SdsError("failed", lackedRight(name, "it may not use the schema"));
    return 0;
  }
  const isOurs = tables.some((table) => table.name === "meta") && (await readApplication(queries)) === APPLICATION;
  if (!isOurs) throw new SdsError("failed", `${name} has tables of another program: give sds a database of its own`);
  const denied = tables.find((table) => !table.isUsable && OWN_TABLES.has(table.name));
  if (denied !== undefined)
    throw new SdsError("failed", lackedRight(name, `it may not read and write the table ${denied.name}`));
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

/** Reads the row `application` of `meta`; undefined if another program made the table. */
async function readApplication(queries: Queries): Promise<string | undefined> {
  try {
    return await readMeta(queries, "application");
  } catch (thrown) {
    if (["42703", "42883"].includes(sqlState(thrown))) return undefined;
    throw thrown;
  }
}

/** @throws SdsError `unavailable` if the schema was upgraded to a version that is too new for this program */
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
