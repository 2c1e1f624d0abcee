import { Database } from "bun:sqlite";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Databases that released versions wrote, with the answers of those versions. README.md in the folder says how to make
 * them.
 */
export const STORED_DATABASES = join(import.meta.dir, "databases");

/** A GET with an API key, and the exact bytes of its answer. */
export interface StoredRequest {
  key: string;
  path: string;
  status: number;
  body: string;
}

/** A command with `--json`, and what it printed. */
export interface StoredCommand {
  args: string[];
  stdout: string;
}

/** A signed request that the database remembers. Posting it again must change nothing. */
export interface SignedPost {
  path: string;
  headers: Record<string, string>;
  body: string;
}

interface StoredShop {
  domain: string;
  /** An API key that is not revoked. */
  key: string;
  intakeSecret: string;
}

export interface Answers {
  /** What `sds version --json` printed. */
  program: string;
  /** When the database was finished, ISO 8601. */
  storedAt: string;
  shops: StoredShop[];
  requests: StoredRequest[];
  commands: StoredCommand[];
  /** Requests that the database has already accepted. */
  taken: SignedPost[];
  /** The secret that signs the platform's webhooks. */
  platformSecret: string;
  /** The cookie of a session of the first shop, and the path of a sign-in link of that shop that nobody used. */
  sessionCookie: string;
  signInPath: string;
}

/** Schema versions of the stored databases, in their order. */
export function storedVersions(): number[] {
  const found = readdirSync(STORED_DATABASES).flatMap((name) => /^version-(\d+)\.db\.zst$/.exec(name)?.[1] ?? []);
  return found.map(Number).toSorted((a, b) => a - b);
}

/** The three files of a version. */
export function filesOf(version: number, folder = STORED_DATABASES) {
  const file = (end: string) => join(folder, `version-${version}.${end}`);
  return { database: file("db.zst"), masterKey: file("master.key"), answers: file("answers.json.zst") };
}

/** The files of a database with unfinished bodies of the intake (databases/README.md). */
export const UNFINISHED_BODY = {
  database: join(STORED_DATABASES, "unfinished-body.db.zst"),
  dump: join(STORED_DATABASES, "unfinished-body.json.zst"),
  masterKey: join(STORED_DATABASES, "unfinished-body.master.key"),
};

/** Unpacks a database file into a new data folder. */
export async function unpackFiles(files: { database: string; masterKey: string }, data: string): Promise<void> {
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "sds.db"), Bun.zstdDecompressSync(await Bun.file(files.database).bytes()));
  writeFileSync(join(data, "master.key"), await Bun.file(files.masterKey).bytes(), { mode: 0o600 });
}

/** Unpacks a stored database into a new data folder. @returns the old answers */
export async function unpack(version: number, data: string): Promise<Answers> {
  const files = filesOf(version);
  await unpackFiles(files, data);
  const answers = Bun.zstdDecompressSync(await Bun.file(files.answers).bytes());
  return JSON.parse(new TextDecoder().decode(answers)) as Answers;
}

/**
 * Reads the schema version and the whole content of the database in a data folder. The content includes the changes in
 * the write-ahead log.
 */
export function readDatabase(data: string): { schemaVersion: number; content: Buffer } {
  const db = new Database(join(data, "sds.db"), { readonly: true });
  try {
    const { user_version } = db.query<{ user_version: number }, []>("PRAGMA user_version").get() ?? { user_version: 0 };
    return { schemaVersion: user_version, content: db.serialize() };
  } finally {
    db.close();
  }
}
