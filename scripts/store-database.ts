import { Database } from "bun:sqlite";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { StandIn } from "../test/support/platform/stand-in.ts";
import { postgresServer } from "../test/support/postgres-server.ts";
import { type Answers, filesOf, readDatabase, STORED_DATABASES } from "../test/support/stored-database.ts";
import { dumpPostgres, postgresFilesOf } from "../test/support/stored-postgres.ts";
import { askCommands, askPages } from "./databases/answers.ts";
import type { Remembered, WebhookReceiver } from "./databases/begin.ts";
import { live } from "./databases/life.ts";
import { clockAt, type OldProgram, oldProgram } from "./databases/program.ts";

const BEGINNING = "2026-02-02T09:00:00.000Z";
const PLATFORM_SECRET = "a-made-up-client-secret";
const ZSTD = { level: 19 };
/** A row of this table reserves a token exchange for some seconds. Only a killed process leaves a row. */
const SHORT_LIVED = "token_exchanges";

const { values } = parseArgs({
  options: {
    source: { type: "string", default: "." },
    to: { type: "string", default: STORED_DATABASES },
    postgres: { type: "boolean", default: false },
  },
});

const folder = mkdtempSync(join(tmpdir(), "sds-store-database-"));
const clock = clockAt(BEGINNING);
const platform = await StandIn.start({
  clientSecret: PLATFORM_SECRET,
  restoreRate: 100_000,
  maximumAvailable: 100_000,
  now: () => clock.now(),
});
const receiver: WebhookReceiver = { url: "", answer: () => new Response() };
const listener = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 255,
  fetch: (request) => receiver.answer(request.headers.get("x-service-topic") ?? ""),
});
receiver.url = `http://127.0.0.1:${listener.port}/hooks`;

try {
  const secretFile = join(folder, "client-secret");
  writeFileSync(secretFile, PLATFORM_SECRET);
  const program = oldProgram(
    resolve(values.source),
    join(folder, "data"),
    {
      SDS_EGRESS_ALLOW: "127.0.0.0/8",
      SDS_PLATFORM_URL: platform.url,
      SDS_PLATFORM_CLIENT_ID: "client",
      SDS_PLATFORM_SECRET_FILE: secretFile,
    },
    clock,
  );
  const remembered = await live({ program, platform, clock, receiver });
  checkFilled(program.data);
  const answers = JSON.stringify(await ask(program, remembered));
  const files = values.postgres ? await storeOnPostgres(program) : storeFile(program);
  writeFileSync(files.masterKey, readFileSync(join(program.data, "master.key")));
  writeFileSync(files.answers, Bun.zstdCompressSync(Buffer.from(answers), ZSTD));
  for (const file of Object.values(files)) process.stdout.write(`${file}: ${Bun.file(file).size} bytes\n`);
} finally {
  await listener.stop(true);
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
}

function storeFile({ data }: OldProgram) {
  const files = filesOf(readDatabase(data).schemaVersion, values.to);
  writeFileSync(files.database, Bun.zstdCompressSync(readFileSync(join(data, "sds.db")), ZSTD));
  return files;
}

/**
 * Copies the finished SQLite database to PostgreSQL, without a shift of the clock. `live` itself cannot run on
 * PostgreSQL: the program's shifted clock would differ from the server's clock.
 */
async function storeOnPostgres({ data }: OldProgram) {
  const server = await postgresServer();
  if (server === undefined) throw new Error("there is no PostgreSQL for this machine");
  const url = await server.createDatabase();
  const command = [process.execPath, resolve(values.source, "src/main.ts"), "copy", "--to", url];
  const { success, stderr } = Bun.spawnSync(command, { env: { PATH: process.env["PATH"] ?? "", SDS_DATA: data } });
  if (!success) throw new Error(`sds copy failed: ${stderr.toString()}`);
  const dump = await dumpPostgres(url);
  const files = postgresFilesOf(dump.schema, values.to);
  writeFileSync(files.dump, Bun.zstdCompressSync(Buffer.from(JSON.stringify(dump)), ZSTD));
  return files;
}

/**
 * Checks that every table except SHORT_LIVED has a row, because an empty table would not be tested.
 * @throws Error that names the empty tables
 */
function checkFilled(data: string): void {
  if (existsSync(join(data, "sds.db-wal")))
    throw new Error("the database has a write-ahead log: a program still has it open");
  const db = new Database(join(data, "sds.db"), { readonly: true });
  const tables = db
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all();
  const isEmpty = (name: string) => db.query(`SELECT 1 FROM "${name}" LIMIT 1`).get() === null;
  const empty = tables.filter(({ name }) => name !== SHORT_LIVED && isEmpty(name));
  db.close();
  if (empty.length > 0)
    throw new Error(`nothing is in ${empty.map(({ name }) => name).join(", ")}: let scripts/databases/ fill them`);
}

/** Asks a copy of the database, so that the original does not change and its queued deliveries are not sent. */
async function ask(program: OldProgram, { revokedKey, ...remembered }: Remembered): Promise<Answers> {
  const data = join(folder, "copy");
  cpSync(program.data, data, { recursive: true });
  const copy = program.on(data);
  const domains = remembered.shops.map(({ domain }) => domain);
  const commands = await askCommands(copy, domains);
  const server = await copy.serve();
  const keys = [...remembered.shops.map(({ key }) => key), `cad_pk_${"0123456789abcdef".repeat(3)}`, revokedKey];
  const requests = (await Promise.all(keys.map((key) => askPages(server, key)))).flat();
  await server.stop();
  const storedAt = new Date(clock.now()).toISOString();
  return {
    program: await copy.run(["version", "--json"]),
    storedAt,
    ...remembered,
    commands,
    requests,
    platformSecret: PLATFORM_SECRET,
  };
}
