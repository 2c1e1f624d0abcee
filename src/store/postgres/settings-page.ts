import type { Vault } from "../files/vault.ts";
import {
  MAX_WRONG_TOKENS,
  noticePurpose,
  type SettingsPageStore,
  WRONG_TOKENS_WITHIN_MS,
} from "../port/settings-page.ts";
import { type Database, pipeline } from "./database.ts";

export function settingsPageStore(db: Database, vault: Vault): SettingsPageStore {
  async function waitMs(network: string, at: number): Promise<number | undefined> {
    const wrong = await db.get<{ count: number; oldest: number }>(
      `SELECT count(*)::float8 AS count, min(each)::float8 AS oldest FROM admin_wrong_tokens, unnest(times) AS each
       WHERE network = $1::text AND abs(each - $2::bigint) < $3::bigint`,
      [network, at, WRONG_TOKENS_WITHIN_MS],
    );
    return wrong === undefined || wrong.count < MAX_WRONG_TOKENS
      ? undefined
      : wrong.oldest + WRONG_TOKENS_WITHIN_MS - at;
  }

  /** Counts in one statement, which waits for others that count for the network. @returns whether it was counted */
  async function count(network: string, at: number): Promise<boolean> {
    const counted = await db.run(
      `INSERT INTO admin_wrong_tokens AS stored (network, times, last_at)
       VALUES ($1::text, ARRAY[$2::bigint], $2::bigint)
       ON CONFLICT (network) DO UPDATE SET last_at = excluded.last_at, times = ARRAY(
         SELECT each FROM unnest(stored.times) WITH ORDINALITY AS counted (each, place)
         WHERE abs(each - $2::bigint) < $3::bigint ORDER BY place
       ) || excluded.last_at
       WHERE $4::bigint > (
         SELECT count(*) FROM unnest(stored.times) AS each WHERE abs(each - $2::bigint) < $3::bigint
       )`,
      [network, at, WRONG_TOKENS_WITHIN_MS, MAX_WRONG_TOKENS],
    );
    return counted > 0;
  }

  return {
    async useForm(session, form) {
      const used = await db.run(
        "INSERT INTO admin_forms (session, form) VALUES ($1::bytea, $2::bytea) ON CONFLICT DO NOTHING",
        [session, form],
      );
      return used > 0;
    },

    async putNotice(session, path, text, expiresAt) {
      await db.run(
        `INSERT INTO admin_notices (session, path, sealed, expires_at)
         VALUES ($1::bytea, $2::text, $3::bytea, $4::bigint)`,
        [session, path, await vault.seal(text, noticePurpose(session)), expiresAt],
      );
    },

    async takeNotices(session, path, now) {
      const taken = await db.all<{ number: number; sealed: Uint8Array }>(
        `DELETE FROM admin_notices WHERE session = $1::bytea AND path = $2::text AND expires_at > $3::bigint
         RETURNING number::float8 AS "number", sealed`,
        [session, path, now],
      );
      taken.sort((a, b) => a.number - b.number);
      return Promise.all(taken.map(({ sealed }) => vault.open(sealed, noticePurpose(session))));
    },

    async countToken(network, at) {
      // A network that has to wait writes nothing.
      const wait = await waitMs(network, at);
      if (wait !== undefined) return wait;
      if (await count(network, at)) return undefined;
      return (await waitMs(network, at)) ?? 1;
    },

    async takeBackToken(network, at) {
      await db.run(
        `UPDATE admin_wrong_tokens SET times = ARRAY(
           SELECT each FROM unnest(times) WITH ORDINALITY AS counted (each, place)
           WHERE place <> array_position(times, $2::bigint) ORDER BY place
         )
         WHERE network = $1::text AND $2::bigint = ANY(times)`,
        [network, at],
      );
    },

    async removeExpired(now, at) {
      await db.transaction((tx) =>
        pipeline([
          tx.run("DELETE FROM admin_links WHERE expires_at <= $1::bigint", [now]),
          tx.run("DELETE FROM admin_notices WHERE expires_at <= $1::bigint", [now]),
          tx.run("DELETE FROM admin_sessions WHERE expires_at <= $1::bigint", [now]),
          tx.run("DELETE FROM admin_wrong_tokens WHERE abs(last_at - $1::bigint) >= $2::bigint", [
            at,
            WRONG_TOKENS_WITHIN_MS,
          ]),
        ]),
      );
    },
  };
}
