import { SdsError } from "../../domain/error.ts";
import type { Topic } from "../../domain/events/event.ts";
import type { Vault } from "../files/vault.ts";
import type { WebhookSettings, WebhookStore } from "../port/webhooks.ts";
import { lockFor, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

interface StoredSecret {
  sealed: Uint8Array;
}

interface StoredEndpoint {
  url: string | null;
  /** JSON array. */
  topics: string;
}

interface NewSecret {
  isFirst: boolean;
  /** How long the previous secret also signs after the new secret exists. */
  overlapMs: number;
}

const FIRST: NewSecret = { isFirst: true, overlapMs: 0 };

export const webhookPurpose = (shopId: number) => `webhook ${shopId}`;

export function webhookStore(db: QuietDatabase, vault: Vault, random: (bytes: number) => Uint8Array): WebhookStore {
  const { sealFirst, ...secrets } = webhookSecrets(db, vault, random);

  return {
    ...secrets,

    async settings(shopId) {
      return settingsOf(await db.get(sql`SELECT url, topics FROM webhook_endpoints WHERE shop_id = ${shopId}`));
    },

    async set(shopId, { url, topics }, now) {
      const firstSecret = await sealFirst(shopId);
      const newTopics = topics === undefined ? null : JSON.stringify(topics);
      const newUrl = url === undefined ? sql`stored.url` : sql`excluded.url`;
      // A new URL has no known pace, so `set` clears the pace of the old URL.
      const change = sql`INSERT INTO webhook_endpoints AS stored (shop_id, url, topics)
          VALUES (${shopId}, ${url ?? null}, coalesce(${newTopics}, '[]'))
          ON CONFLICT (shop_id) DO UPDATE SET
            url = ${newUrl}, topics = coalesce(${newTopics}, stored.topics),
            pace = CASE WHEN stored.url IS NOT DISTINCT FROM ${newUrl} THEN stored.pace END,
            timed_out_at = CASE WHEN stored.url IS NOT DISTINCT FROM ${newUrl} THEN stored.timed_out_at END
          RETURNING url, topics`;
      const stored = await db.transaction(function* () {
        if (firstSecret !== null) yield* addSecret(db, shopId, firstSecret, now, FIRST);
        return yield* tx.get<StoredEndpoint>(change);
      });
      return settingsOf(stored);
    },

    async clear(shopId) {
      await db.run(sql`DELETE FROM webhook_endpoints WHERE shop_id = ${shopId}`);
    },
  };
}

/** Makes the operations on the secrets that sign a shop's webhooks. */
function webhookSecrets(
  db: QuietDatabase,
  vault: Vault,
  random: (bytes: number) => Uint8Array,
): Omit<WebhookStore, "settings" | "set" | "clear"> & { sealFirst: (shopId: number) => Promise<Uint8Array | null> } {
  /** Seals a new secret before a transaction, because sealing is asynchronous. `addSecret` may drop it. */
  const seal = (shopId: number) => vault.seal(newSigningSecret(random), webhookPurpose(shopId));

  async function makeSecret(shopId: number, now: number, secret: NewSecret): Promise<void> {
    const sealed = await seal(shopId);
    await db.transaction(() => addSecret(db, shopId, sealed, now, secret));
  }

  async function secret(shopId: number, now: number): Promise<string> {
    let sealed = await newestSecret(db, shopId);
    if (sealed === null) {
      await makeSecret(shopId, now, FIRST);
      sealed = await newestSecret(db, shopId);
    }
    if (sealed === null) throw new SdsError("not_found", "the shop was removed");
    return vault.open(sealed, webhookPurpose(shopId));
  }

  return {
    secret,

    // Returns null if the shop has a secret already.
    async sealFirst(shopId) {
      return (await newestSecret(db, shopId)) === null ? seal(shopId) : null;
    },

    async secretOf(shopId, version) {
      const stored = await db.get<StoredSecret>(
        sql`SELECT sealed FROM webhook_secrets WHERE shop_id = ${shopId} AND version = ${version}`,
      );
      if (stored === undefined) throw new SdsError("failed", `the signing secret ${version} of the shop is missing`);
      return vault.open(stored.sealed, webhookPurpose(shopId));
    },

    async secrets(shopId) {
      const stored = await db.all<StoredSecret>(
        sql`SELECT sealed FROM webhook_secrets WHERE shop_id = ${shopId} ORDER BY version DESC`,
      );
      return Promise.all(stored.map(({ sealed }) => vault.open(sealed, webhookPurpose(shopId))));
    },

    async overlapEndsAt(shopId) {
      const newest = await db.get<{ endsAt: number | null }>(
        sql`SELECT overlap_ends_at AS "endsAt" FROM webhook_secrets WHERE shop_id = ${shopId}
          ORDER BY version DESC LIMIT 1`,
      );
      return newest?.endsAt ?? null;
    },

    async rotateSecret(shopId, now, overlapMs = 0) {
      await makeSecret(shopId, now, { isFirst: false, overlapMs });
      return secret(shopId, now);
    },
  };
}

/**
 * Reads the newest secret, sealed. @returns null if the shop has no secret
 * @throws SdsError `not_found` for a removed shop
 */
async function newestSecret(db: QuietDatabase, shopId: number): Promise<Uint8Array | null> {
  const shop = await db.get<{ sealed: Uint8Array | null }>(
    sql`SELECT (
        SELECT sealed FROM webhook_secrets WHERE shop_id = shops.id ORDER BY version DESC LIMIT 1
      ) AS sealed FROM shops WHERE id = ${shopId} AND removal_started_at IS NULL`,
  );
  if (shop === undefined) throw new SdsError("not_found", "the shop was removed");
  return shop.sealed;
}

/** Adds a secret, except to a removed shop. Adds no first secret if another process has added one. */
function* addSecret(
  db: QuietDatabase,
  shopId: number,
  sealed: Uint8Array,
  now: number,
  { isFirst, overlapMs }: NewSecret,
): TransactionWork<void> {
  // With this lock, processes make secrets one after another, so no two secrets get the same version. Processes that
  // only add rows of the shop to other tables do not wait for the lock.
  const shop = yield* tx.get(
    sql`SELECT 1 AS one FROM shops WHERE id = ${shopId} AND removal_started_at IS NULL ${lockFor(db, "NO KEY UPDATE")}`,
  );
  const last = yield* tx.get<{ version: number | null }>(
    sql`SELECT max(version) AS version FROM webhook_secrets WHERE shop_id = ${shopId}`,
  );
  const version = last?.version ?? 0;
  if (shop === undefined || (isFirst && version > 0)) return;
  const overlapEndsAt = version > 0 && overlapMs > 0 ? now + overlapMs : null;
  yield* tx.run(
    sql`INSERT INTO webhook_secrets (shop_id, version, sealed, created_at, overlap_ends_at)
      VALUES (${shopId}, ${version + 1}, ${sealed}, ${now}, ${overlapEndsAt})`,
  );
}

function settingsOf(stored: StoredEndpoint | undefined): WebhookSettings {
  if (stored === undefined) return { url: null, topics: [] };
  return { url: stored.url, topics: JSON.parse(stored.topics) as Topic[] };
}

/** Returns a secret that signs webhooks. */
export function newSigningSecret(random: (bytes: number) => Uint8Array): string {
  return `whsec_${random(32).toBase64()}`;
}
