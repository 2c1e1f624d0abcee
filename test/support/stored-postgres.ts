import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { parseServerAddress } from "../../src/store/postgres/address.ts";
import { openConnections } from "../../src/store/postgres/database.ts";
import { MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { migrate } from "../../src/store/postgres/upgrade.ts";
import { type Answers, STORED_DATABASES } from "./stored-database.ts";

/** A PostgreSQL database as a file. Pinned migrations make its tables, so rows and sequences are enough. */
interface Dump {
  schema: number;
  /** The rows of each table, as PostgreSQL writes them in JSON. */
  tables: Record<string, object[]>;
  /** The last number that each sequence gave. */
  sequences: Record<string, number>;
}

/** Schema versions of the stored PostgreSQL databases, in their order. */
export function storedPostgresVersions(): number[] {
  const found = readdirSync(STORED_DATABASES).flatMap((name) => /^postgres-(\d+)\.json\.zst$/.exec(name)?.[1] ?? []);
  return found.map(Number).toSorted((a, b) => a - b);
}

/** The three files of a version. */
export function postgresFilesOf(version: number, folder = STORED_DATABASES) {
  const file = (end: string) => join(folder, `postgres-${version}.${end}`);
  return { dump: file("json.zst"), masterKey: file("master.key"), answers: file("answers.json.zst") };
}

async function withSql<T>(url: string, run: (sql: SQL) => Promise<T>): Promise<T> {
  const sql = new SQL(url, { max: 1 });
  try {
    return await run(sql);
  } finally {
    await sql.close();
  }
}

/** Dumps a database: the rows of all tables and the last numbers of all sequences. No node may run meanwhile. */
export function dumpPostgres(url: string): Promise<Dump> {
  return withSql(url, async (sql) => {
    const names: { name: string }[] = await sql.unsafe(
      "SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1",
    );
    const tables: Dump["tables"] = {};
    for (const { name } of names) {
      const [row] = await sql.unsafe(`SELECT coalesce(json_agg(t), '[]')::text AS rows FROM ${name} AS t`);
      tables[name] = JSON.parse(row.rows) as object[];
    }
    const last: { name: string; value: string }[] = await sql.unsafe(
      "SELECT sequencename::text AS name, last_value AS value FROM pg_sequences WHERE last_value IS NOT NULL",
    );
    const schema = (tables["meta"] as { name: string; value: string }[]).find(({ name }) => name === "schema");
    const sequences = Object.fromEntries(last.map(({ name, value }) => [name, Number(value)]));
    return { schema: Number(schema?.value), tables, sequences };
  });
}

/** Restores a stored database into an empty one, and its master key into a data folder. @returns the old answers */
export async function unpackPostgres(version: number, url: string, data: string): Promise<Answers> {
  const files = postgresFilesOf(version);
  await unpackDump(files, url, data);
  return unpacked(files.answers);
}

/** Fills an empty database with a dump, and a data folder with its master key. */
export async function unpackDump(files: { dump: string; masterKey: string }, url: string, data: string): Promise<void> {
  mkdirSync(data, { mode: 0o700, recursive: true });
  await Bun.write(join(data, "master.key"), Bun.file(files.masterKey), { mode: 0o600 });
  const { schema, tables, sequences } = await unpacked<Dump>(files.dump);
  const address = parseServerAddress(url, null);
  const db = openConnections({
    address,
    connections: 2,
    deadlineMs: 30_000,
    waitMs: 2_000,
    isPooled: false,
    sleep: Bun.sleep,
  });
  await migrate(db, "it", { migrations: MIGRATIONS.slice(0, schema), sleep: Bun.sleep }).finally(() => db.close());
  await withSql(url, (sql) =>
    sql.begin(async (tx) => {
      // Switches off the checks of foreign keys, because a table may come before the table that it refers to.
      await tx.unsafe("SET LOCAL session_replication_role = replica; DELETE FROM meta").simple();
      for (const [table, rows] of Object.entries(tables)) {
        const columns = await ownColumns(tx, table);
        await tx.unsafe(
          `INSERT INTO ${table} (${columns}) OVERRIDING SYSTEM VALUE
           SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1::text::json)`,
          [JSON.stringify(rows)],
        );
      }
      for (const [name, value] of Object.entries(sequences)) await tx.unsafe(`SELECT setval('${name}', ${value})`);
    }),
  );
}

/** The columns of a table without those that the server computes. */
async function ownColumns(sql: SQL, table: string): Promise<string> {
  const [row] = await sql.unsafe(
    `SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS columns FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
    [table],
  );
  return row.columns;
}

async function unpacked<T>(file: string): Promise<T> {
  return JSON.parse(new TextDecoder().decode(Bun.zstdDecompressSync(await Bun.file(file).bytes()))) as T;
}
