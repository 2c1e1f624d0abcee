import { SdsError } from "../../domain/error.ts";
import type { Topic } from "../../domain/events/event.ts";
import type { Vault } from "../files/vault.ts";
import type { WebhookSettings, WebhookStore } from "../port/webhooks.ts";
import type { Database } from "./database.ts";

export function webhookStore(db: Database, vault: Vault, random: (bytes: number) => Uint8Array): WebhookStore {
  const purpose = (shopId: number) => `webhook ${shopId}`;

  /** The newest secret, null where the shop has none. @throws SdsError `not_found` for a removed shop */
  async function newest(shopId: number): Promise<Uint8Array | null> {
    const shop = await db.get<{ sealed: Uint8Array | null }>(
      `SELECT (
         SELECT sealed FROM webhook_secrets WHERE shop_id = shops.id ORDER BY version DESC LIMIT 1
       ) AS sealed FROM shops WHERE id = $1::bigint AND removal_started_at IS NULL`,
      [shopId],
    );
    if (shop === undefined) throw new SdsError("not_found", "the shop was removed");
    return shop.sealed;
  }

  /**
   * Sealing is asynchronous, so it comes before the transaction. A first secret is dropped if another process made one
   * meanwhile, and any secret if the shop was removed.
   */
  async function makeSecret(shopId: number, now: number, { first, overlapMs }: NewSecret): Promise<void> {
    const sealed = await vault.seal(`whsec_${random(32).toBase64()}`, purpose(shopId));
    await db.transaction(async (tx) => {
      // One process at a time, so that each secret has a version of its own. Those who only add rows do not wait.
      const shop = await tx.get(
        `SELECT 1 AS one FROM shops WHERE id = $1::bigint AND removal_started_at IS NULL FOR NO KEY UPDATE`,
        [shopId],
      );
      if (shop === undefined) return;
      await tx.run(
        `INSERT INTO webhook_secrets (shop_id, version, sealed, created_at, overlap_ends_at)
         SELECT $1::bigint, coalesce(max(version), 0) + 1, $2::bytea, $3::bigint,
           CASE WHEN count(*) > 0 THEN $5::bigint END
         FROM webhook_secrets WHERE shop_id = $1::bigint HAVING count(*) = 0 OR NOT $4::boolean`,
        [shopId, sealed, now, first, overlapMs > 0 ? now + overlapMs : null],
      );
    });
  }

  async function secret(shopId: number, now: number): Promise<string> {
    let sealed = await newest(shopId);
    if (sealed === null) {
      await makeSecret(shopId, now, { first: true, overlapMs: 0 });
      sealed = await newest(shopId);
    }
    if (sealed === null) throw new SdsError("not_found", "the shop was removed");
    return vault.open(sealed, purpose(shopId));
  }

  return {
    async settings(shopId) {
      return settingsOf(
        await db.get<StoredSettings>("SELECT url, topics FROM webhook_endpoints WHERE shop_id = $1::bigint", [shopId]),
      );
    },

    async set(shopId, { url, topics }, now) {
      await secret(shopId, now);
      // Another endpoint was never tried.
      const stored = await db.get<StoredSettings>(
        `INSERT INTO webhook_endpoints AS stored (shop_id, url, topics)
         VALUES ($1::bigint, $3::text, coalesce($4::text, '[]'))
         ON CONFLICT (shop_id) DO UPDATE SET
           url = CASE WHEN $2::boolean THEN $3::text ELSE stored.url END,
           topics = coalesce($4::text, stored.topics),
           pace = CASE WHEN $2::boolean AND stored.url IS DISTINCT FROM $3::text THEN NULL ELSE stored.pace END,
           timed_out_at =
             CASE WHEN $2::boolean AND stored.url IS DISTINCT FROM $3::text THEN NULL ELSE stored.timed_out_at END
         RETURNING url, topics`,
        [shopId, url !== undefined, url ?? null, topics === undefined ? null : JSON.stringify(topics)],
      );
      return settingsOf(stored);
    },

    async clear(shopId) {
      await db.run("DELETE FROM webhook_endpoints WHERE shop_id = $1::bigint", [shopId]);
    },

    secret,

    async secretOf(shopId, version) {
      const found = await db.get<{ sealed: Uint8Array }>(
        "SELECT sealed FROM webhook_secrets WHERE shop_id = $1::bigint AND version = $2::bigint",
        [shopId, version],
      );
      if (found === undefined) throw new SdsError("failed", `the signing secret ${version} of the shop is missing`);
      return vault.open(found.sealed, purpose(shopId));
    },

    async secrets(shopId) {
      const found = await db.all<{ sealed: Uint8Array }>(
        "SELECT sealed FROM webhook_secrets WHERE shop_id = $1::bigint ORDER BY version DESC",
        [shopId],
      );
      return Promise.all(found.map(({ sealed }) => vault.open(sealed, purpose(shopId))));
    },

    async overlapEndsAt(shopId) {
      const newest = await db.get<{ endsAt: number | null }>(
        `SELECT overlap_ends_at::float8 AS "endsAt" FROM webhook_secrets WHERE shop_id = $1::bigint
         ORDER BY version DESC LIMIT 1`,
        [shopId],
      );
      return newest?.endsAt ?? null;
    },

    async rotateSecret(shopId, now, overlapMs = 0) {
      await makeSecret(shopId, now, { first: false, overlapMs });
      return secret(shopId, now);
    },
  };
}

interface NewSecret {
  /** Only if the shop has none. */
  first: boolean;
  /** How long the former secret signs too. */
  overlapMs: number;
}

interface StoredSettings {
  url: string | null;
  topics: string;
}

function settingsOf(stored: StoredSettings | undefined): WebhookSettings {
  if (stored === undefined) return { url: null, topics: [] };
  return { url: stored.url, topics: JSON.parse(stored.topics) as Topic[] };
}
