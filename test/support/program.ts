import { Database } from "bun:sqlite";
import { join } from "node:path";
import { SQL } from "bun";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { temporaryFolder } from "./app.ts";
import { afterTest } from "./cleanup.ts";
import { checkAnswersOf } from "./described-fetch.ts";
import { UPGRADE } from "./open-store.ts";
import { countPostgresRows, readPostgresRows } from "./postgres-rows.ts";
import { emptyDatabase } from "./postgres-server.ts";
import { fileHas } from "./removed-shop.ts";
import { countRows, readRows } from "./rows.ts";
import { type Row, TABLE_NAMES, type Table } from "./tables.ts";

const BINARY = process.env["SDS_BINARY"];
/** The command that runs the program: SDS_BINARY if it is set, otherwise the source. Flow tests run on both. */
export const PROGRAM = BINARY === undefined ? [process.execPath, join(import.meta.dir, "../../src/main.ts")] : [BINARY];
export const isCompiled = BINARY !== undefined;

/** The engine of the programs in flow tests: SQLite, or PostgreSQL if SDS_TEST_ENGINE is "postgres". */
export const ENGINE = process.env["SDS_TEST_ENGINE"] ?? "sqlite";

/** The PostgreSQL database that belongs to a data folder. Programs on one folder share it. */
const databases = new Map<string, Promise<string>>();

function databaseOf(data: string): Promise<string> {
  const known = databases.get(data);
  if (known !== undefined) return known;
  const made = createDatabase(data);
  databases.set(data, made);
  return made;
}

async function createDatabase(data: string): Promise<string> {
  afterTest(() => databases.delete(data));
  return emptyDatabase();
}

export interface Result {
  status: number;
  stdout: string;
  stderr: string;
}

/** The result of a command that prints one line on stderr and nothing else. */
export function failure(status: number, message: string): Result {
  return { status, stdout: "", stderr: `sds: ${message}\n` };
}

export interface Options {
  stdin?: string | Uint8Array<ArrayBuffer>;
  env?: Record<string, string>;
}

/** The program on one data folder, run as a user runs it. */
export class Program {
  readonly data: string;

  private readonly env: Record<string, string>;

  /** @param env for every command of this program */
  constructor(data = join(temporaryFolder(), "data"), env: Record<string, string> = {}) {
    this.data = data;
    this.env = env;
  }

  /** A program whose data folder has the shop alpha.myshopify.com. */
  static async withShop(env?: Record<string, string>): Promise<Program> {
    const program = new Program(undefined, env);
    await program.json(["shop", "add", "alpha.myshopify.com"]);
    return program;
  }

  /** The address of the program's PostgreSQL database; undefined for SQLite. */
  async databaseUrl(): Promise<string | undefined> {
    if (this.env["SDS_DATABASE_URL"] !== undefined) return this.env["SDS_DATABASE_URL"];
    return ENGINE === "postgres" ? databaseOf(this.data) : undefined;
  }

  /** The environment of a command, for tests that start the command themselves. */
  async environment(env: Record<string, string> = {}): Promise<Record<string, string>> {
    const url = await this.databaseUrl();
    const database: Record<string, string> = url === undefined ? {} : { SDS_DATABASE_URL: url };
    return { PATH: process.env["PATH"] ?? "", SDS_DATA: this.data, ...database, ...this.env, ...env };
  }

  private async spawnOptions(env?: Record<string, string>) {
    return { env: await this.environment(env), cwd: temporaryFolder() };
  }

  /** All rows of a table, in the order and form that tables.ts describes. */
  async rows(table: Table): Promise<Row[]> {
    const url = await this.databaseUrl();
    return url === undefined ? readRows(this.data, table) : readPostgresRows(url, table);
  }

  /** Counts a shop's rows in a table. Cheap enough to poll. */
  async count(table: Table, shopId: number): Promise<number> {
    const url = await this.databaseUrl();
    return url === undefined ? countRows(this.data, table, shopId) : countPostgresRows(url, table, shopId);
  }

  /**
   * Whether a text is anywhere in the database. With SQLite, this also searches the deleted bytes of the file. In this
   * case, `serve` must have stopped.
   */
  async holds(text: string): Promise<boolean> {
    if ((await this.databaseUrl()) === undefined) return fileHas(this.data, text);
    for (const table of TABLE_NAMES)
      if ((await this.rows(table)).some((row) => Object.values(row).some((value) => textOf(value).includes(text))))
        return true;
    return false;
  }

  /** Sets the schema version, as another version of the program would. */
  async setSchemaVersion(version: number): Promise<void> {
    const url = await this.databaseUrl();
    if (url !== undefined) {
      const sql = new SQL(url, { max: 1 });
      await sql.unsafe(`UPDATE meta SET value = '${version}' WHERE name = 'schema'`);
      return sql.close();
    }
    const db = new Database(join(this.data, "sds.db"));
    db.run("PRAGMA busy_timeout = 10000");
    db.run(`PRAGMA user_version = ${version}`);
    db.close();
  }

  /** Opens the program's database in this process. The store is closed after the test. */
  async openStore(): Promise<Store> {
    const url = await this.databaseUrl();
    const store = await openStore({
      folder: this.data,
      masterKeyFile: join(this.data, "master.key"),
      busyTimeoutMs: 30_000,
      ...UPGRADE,
      server: url === undefined ? null : { url, passwordFile: null, sleep: Bun.sleep },
    });
    afterTest(() => store.close());
    return store;
  }

  async run(args: string[], { stdin = "", env }: Options = {}): Promise<Result> {
    const child = Bun.spawn([...PROGRAM, ...args], {
      ...(await this.spawnOptions(env)),
      stdin: Buffer.from(stdin),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { status, stdout, stderr };
  }

  /** Starts a command without waiting for its end. */
  async start(args: string[]): Promise<{ pid: number; exited: Promise<number>; stderr: ReadableStream<Uint8Array> }> {
    const child = Bun.spawn([...PROGRAM, ...args], {
      ...(await this.spawnOptions()),
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    afterTest(async () => {
      child.kill("SIGKILL");
      await child.exited;
    });
    const { pid, exited, stderr } = child;
    return { pid, exited, stderr };
  }

  /** Runs a command on a terminal, and answers its question with a text. */
  async answer(args: string[], text: string): Promise<{ status: number; shown: string }> {
    let shown = "";
    const child = Bun.spawn([...PROGRAM, ...args], {
      ...(await this.spawnOptions()),
      terminal: {
        data(terminal, bytes) {
          const asked = shown.includes("[y/N]");
          shown += Buffer.from(bytes).toString();
          if (!asked && shown.includes("[y/N]")) terminal.write(text);
        },
      },
    });
    return { status: await child.exited, shown };
  }

  /** Runs a command that has to succeed. @returns what `--json` printed */
  async json<T = Record<string, unknown>>(args: string[], options?: Options): Promise<T> {
    const { status, stdout, stderr } = await this.run([...args, "--json"], options);
    if (status !== 0) throw new Error(`sds ${args.join(" ")} ended with ${status}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  /** Starts `serve`, or another command that prints an address, and waits until it listens. */
  async serve(
    args: string[] = ["serve", "--port", "0"],
    env?: Record<string, string>,
    { descriptors }: { descriptors?: number } = {},
  ): Promise<Server> {
    const limited = descriptors === undefined ? [] : ["sh", "-c", `ulimit -n ${descriptors} && exec "$@"`, "sh"];
    const child = Bun.spawn([...limited, ...PROGRAM, ...args], {
      ...(await this.spawnOptions(env)),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    afterTest(async () => {
      child.kill("SIGKILL");
      await child.exited;
    });
    const server: Server = {
      url: "",
      output: "",
      pid: child.pid,
      exited: child.exited,
      async stop(signal: NodeJS.Signals = "SIGTERM") {
        child.kill(signal);
        return child.exited;
      },
    };
    const { promise, resolve } = Promise.withResolvers<string>();
    async function follow(stream: ReadableStream<Uint8Array>): Promise<void> {
      const decoder = new TextDecoder();
      for await (const chunk of stream) {
        server.output += decoder.decode(chunk, { stream: true });
        const url = /(?:listening on|is at) (http:\/\/[^\s]+)/.exec(server.output)?.[1];
        if (url !== undefined) resolve(url);
      }
    }
    follow(child.stdout);
    follow(child.stderr);
    const ended = child.exited.then((status) => {
      throw new Error(`sds ${args.join(" ")} ended with ${status}: ${server.output}`);
    });
    server.url = await Promise.race([promise, ended]);
    if (args[0] === "serve") checkAnswersOf(server.url);
    ended.catch(() => undefined);
    return server;
  }
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value);
}

export interface Server {
  url: string;
  /** The server's output so far. */
  output: string;
  pid: number;
  exited: Promise<number>;
  stop(signal?: NodeJS.Signals): Promise<number>;
}
