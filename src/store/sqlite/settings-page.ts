import type { Database } from "bun:sqlite";
import type { Vault } from "../files/vault.ts";
import {
  MAX_WRONG_TOKENS,
  noticePurpose,
  type SettingsPageStore,
  WRONG_TOKENS_WITHIN_MS,
} from "../port/settings-page.ts";

export function settingsPageStore(db: Database, vault: Vault): SettingsPageStore {
  const useForm = db.prepare("INSERT INTO admin_forms (session, form) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const putNotice = db.prepare("INSERT INTO admin_notices (session, path, sealed, expires_at) VALUES (?, ?, ?, ?)");
  const hasNotice = db.prepare<unknown, [Uint8Array, string, number]>(
    "SELECT 1 FROM admin_notices WHERE session = ? AND path = ? AND expires_at > ?",
  );
  const takeNotices = db.prepare<{ number: number; sealed: Uint8Array }, [Uint8Array, string, number]>(
    "DELETE FROM admin_notices WHERE session = ? AND path = ? AND expires_at > ? RETURNING number, sealed",
  );
  const readTimes = db.prepare<{ times: string }, [string]>("SELECT times FROM admin_wrong_tokens WHERE network = ?");
  const writeTimes = db.prepare(
    `INSERT INTO admin_wrong_tokens (network, times, last_at) VALUES (?1, ?2, ?3)
     ON CONFLICT (network) DO UPDATE SET times = excluded.times, last_at = excluded.last_at`,
  );
  const takeBack = db.prepare("UPDATE admin_wrong_tokens SET times = ?2 WHERE network = ?1");
  const removeExpired = ["admin_links", "admin_notices", "admin_sessions"].map((table) =>
    db.prepare(`DELETE FROM ${table} WHERE expires_at <= ?`),
  );
  const removeTimes = db.prepare("DELETE FROM admin_wrong_tokens WHERE abs(last_at - ?1) >= ?2");

  const timesOf = (network: string) => JSON.parse(readTimes.get(network)?.times ?? "[]") as number[];
  const recentTimes = (network: string, at: number) =>
    timesOf(network).filter((each) => Math.abs(each - at) < WRONG_TOKENS_WITHIN_MS);

  function waitMs(network: string, at: number): number | undefined {
    const times = recentTimes(network, at);
    return times.length < MAX_WRONG_TOKENS ? undefined : Math.min(...times) + WRONG_TOKENS_WITHIN_MS - at;
  }

  return {
    async useForm(session, form) {
      return useForm.run(session, form).changes > 0;
    },

    async putNotice(session, path, text, expiresAt) {
      const sealed = await vault.seal(text, noticePurpose(session));
      putNotice.run(session, path, sealed, expiresAt);
    },

    async takeNotices(session, path, now) {
      // Most pages have none, and then nobody has to wait for the write lock.
      if (hasNotice.get(session, path, now) === null) return [];
      const taken = takeNotices.all(session, path, now).sort((a, b) => a.number - b.number);
      return Promise.all(taken.map(({ sealed }) => vault.open(sealed, noticePurpose(session))));
    },

    async countToken(network, at) {
      // A network that has to wait writes nothing.
      const wait = waitMs(network, at);
      if (wait !== undefined) return wait;
      return db
        .transaction(() => {
          const wait = waitMs(network, at);
          if (wait === undefined) writeTimes.run(network, JSON.stringify([...recentTimes(network, at), at]), at);
          return wait;
        })
        .immediate();
    },

    async takeBackToken(network, at) {
      db.transaction(() => {
        const times = timesOf(network);
        const index = times.lastIndexOf(at);
        if (index !== -1) takeBack.run(network, JSON.stringify(times.toSpliced(index, 1)));
      }).immediate();
    },

    async removeExpired(now, at) {
      db.transaction(() => {
        for (const statement of removeExpired) statement.run(now);
        removeTimes.run(at, WRONG_TOKENS_WITHIN_MS);
      }).immediate();
    },
  };
}
