import { Database } from "bun:sqlite";
import { SdsError } from "../../domain/error.ts";

/**
 * Stores the process id of this `serve`, and removes the address of a killed `serve`. The error of a second `serve`
 * names the process id. Call this only while `serve` has the folder's lock. On a full disk, `serve` continues without
 * the note.
 */
export function noteServe(db: Database, processId: number): void {
  try {
    db.transaction(() => {
      db.run("DELETE FROM meta WHERE name = 'address'");
      db.query(
        `INSERT INTO meta (name, value) VALUES ('process', ?)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      ).run(String(processId));
    }).immediate();
  } catch {
    // A later check logs that the database cannot be written.
  }
}

const READ_WAIT_MS = 1_000;

/** Returns the error of a second `serve`. It names process and address of the first. */
export function secondServe(folder: string, database: string): SdsError {
  const { process, address } = readNote(database);
  const first = process === undefined ? "" : `, process ${process}`;
  const where = address === undefined ? "" : ` at ${address}`;
  return new SdsError(
    "failed",
    `\`sds serve\` already runs for ${folder}${first}${where}: stop it first, or name another folder with --data`,
  );
}

/** Reads the note. It is empty while the first `serve` makes or upgrades the database. */
function readNote(database: string): Partial<Record<"process" | "address", string>> {
  let db: Database | undefined;
  try {
    db = new Database(database, { readonly: true });
    db.run(`PRAGMA busy_timeout = ${READ_WAIT_MS}`);
    const rows = db.query<{ name: string; value: string }, []>(
      "SELECT name, value FROM meta WHERE name IN ('process', 'address')",
    );
    return Object.fromEntries(rows.all().map(({ name, value }) => [name, value]));
  } catch {
    return {};
  } finally {
    db?.close();
  }
}
