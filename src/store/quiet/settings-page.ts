import type { Vault } from "../files/vault.ts";
import type { SettingsPageStore } from "../port/settings-page.ts";
import { either, lockFor, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

/** Number of wrong tokens within WRONG_TOKENS_WITHIN_MS after which a network has to wait. */
const MAX_WRONG_TOKENS = 5;
/**
 * Maximum age of a wrong token that counts towards the limit. The time of a token may also be this far in the future,
 * because the clock may have been set back.
 */
const WRONG_TOKENS_WITHIN_MS = 60_000;

/** Returns the purpose for which `Vault` seals a session's notices. */
export const noticePurpose = (session: Uint8Array) => `notice of session ${session.toHex()}`;

export function settingsPageStore(db: QuietDatabase, vault: Vault): SettingsPageStore {
  return {
    async useForm(session, form) {
      const used = await db.run(
        sql`INSERT INTO admin_forms (session, form) VALUES (${session}, ${form}) ON CONFLICT DO NOTHING`,
      );
      return used > 0;
    },

    async putNotice(session, path, text, expiresAt) {
      const sealed = await vault.seal(text, noticePurpose(session));
      await db.run(
        sql`INSERT INTO admin_notices (session, path, sealed, expires_at)
          VALUES (${session}, ${path}, ${sealed}, ${expiresAt})`,
      );
    },

    async takeNotices(session, path, now) {
      const isWaiting = sql`session = ${session} AND path = ${path} AND expires_at > ${now}`;
      // Reads first: most pages have no notice, so they take no write lock.
      if ((await db.get(sql`SELECT 1 AS one FROM admin_notices WHERE ${isWaiting}`)) === undefined) return [];
      const taken = await db.all<{ number: number; sealed: Uint8Array }>(
        sql`DELETE FROM admin_notices WHERE ${isWaiting} RETURNING number, sealed`,
      );
      taken.sort((a, b) => a.number - b.number);
      return Promise.all(taken.map(({ sealed }) => vault.open(sealed, noticePurpose(session))));
    },

    async countToken(network, at) {
      const stored = await db.get<StoredTimes>(
        sql`SELECT ${timesText(db)} AS times FROM admin_wrong_tokens WHERE network = ${network}`,
      );
      // Reads before writing, so that a rate-limited client network causes no database write.
      return waitMs(timesOf(stored), at) ?? db.transaction(() => count(db, network, at));
    },

    takeBackToken: (network, at) => db.transaction(() => takeBack(db, network, at)),

    removeExpired: (now, at) =>
      db.transaction(function* () {
        yield* tx.run(sql`DELETE FROM admin_links WHERE expires_at <= ${now}`);
        yield* tx.run(sql`DELETE FROM admin_notices WHERE expires_at <= ${now}`);
        yield* tx.run(sql`DELETE FROM admin_sessions WHERE expires_at <= ${now}`);
        yield* tx.run(sql`DELETE FROM admin_wrong_tokens WHERE abs(last_at - ${at}) >= ${WRONG_TOKENS_WITHIN_MS}`);
      }),
  };
}

interface StoredTimes {
  /** JSON array. */
  times: string;
}

const timesOf = (stored: StoredTimes | undefined) => JSON.parse(stored?.times ?? "[]") as number[];

const isRecent = (time: number, at: number) => Math.abs(time - at) < WRONG_TOKENS_WITHIN_MS;

function waitMs(times: readonly number[], at: number): number | undefined {
  const recent = times.filter((time) => isRecent(time, at));
  return recent.length < MAX_WRONG_TOKENS ? undefined : Math.min(...recent) + WRONG_TOKENS_WITHIN_MS - at;
}

/** Returns SQL that reads the times of wrong tokens as JSON. PostgreSQL stores them as an array, SQLite as JSON. */
const timesText = (db: QuietDatabase) => either(db, { sqlite: sql`times`, postgres: sql`array_to_json(times)::text` });

function timesValue(db: QuietDatabase, times: readonly number[]) {
  const [json, array] = [JSON.stringify(times), `{${times.join(",")}}`];
  return either(db, { sqlite: sql`${json}`, postgres: sql`${array}::bigint[]` });
}

/** Counts a token, unless the network has to wait. @returns milliseconds to wait; undefined if the token was counted */
function* count(db: QuietDatabase, network: string, at: number): TransactionWork<number | undefined> {
  // This statement locks the row even if the row exists already. So processes count one after the other.
  const stored = yield* tx.get<StoredTimes>(
    sql`INSERT INTO admin_wrong_tokens AS stored (network, times, last_at)
      VALUES (${network}, ${timesValue(db, [])}, ${at})
      ON CONFLICT (network) DO UPDATE SET last_at = stored.last_at RETURNING ${timesText(db)} AS times`,
  );
  const recent = timesOf(stored).filter((time) => isRecent(time, at));
  const wait = waitMs(recent, at);
  if (wait === undefined) yield* setTimes(db, network, [...recent, at], at);
  return wait;
}

function* takeBack(db: QuietDatabase, network: string, at: number): TransactionWork<void> {
  const stored = yield* tx.get<StoredTimes & { lastAt: number }>(
    sql`SELECT ${timesText(db)} AS times, last_at AS "lastAt" FROM admin_wrong_tokens
      WHERE network = ${network} ${lockFor(db, "UPDATE")}`,
  );
  const times = timesOf(stored);
  const index = times.lastIndexOf(at);
  if (stored !== undefined && index !== -1) yield* setTimes(db, network, times.toSpliced(index, 1), stored.lastAt);
}

function* setTimes(db: QuietDatabase, network: string, times: number[], lastAt: number): TransactionWork<void> {
  yield* tx.run(
    sql`UPDATE admin_wrong_tokens SET times = ${timesValue(db, times)}, last_at = ${lastAt} WHERE network = ${network}`,
  );
}
