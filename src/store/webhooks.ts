import type { Database } from "bun:sqlite";
import { SdsError } from "../domain/error.ts";
import type { Topic } from "../domain/event.ts";
import type { Vault } from "./vault.ts";

/** Where a shop's webhooks go, and which topics. */
export interface WebhookSettings {
  url: string | null;
  topics: Topic[];
}

export interface WebhookStore {
  settings(shopId: number): Promise<WebhookSettings>;
  /** Sets what is given and keeps the rest; a shop's first signing secret is made with it. */
  set(shopId: number, change: Partial<WebhookSettings>, now: number): Promise<WebhookSettings>;
  /** No URL and no topics: nothing is queued any more. The secrets stay, for what was queued before. */
  clear(shopId: number): Promise<void>;
  /** The secret that signs what is queued now; made if there is none. */
  secret(shopId: number, now: number): Promise<string>;
  /** The secret of an earlier version. */
  secretOf(shopId: number, version: number): Promise<string>;
  /** All that still sign something or may have, newest first. */
  secrets(shopId: number): Promise<string[]>;
  /** Makes a new secret for what is queued from now on. */
  rotateSecret(shopId: number, now: number): Promise<string>;
}

export function webhookStore(db: Database, vault: Vault, random: (bytes: number) => Uint8Array): WebhookStore {
  const find = db.prepare<{ url: string | null; topics: string }, [number]>("SELECT url, topics FROM webhook_endpoints WHERE shop_id = ?");
  const write = db.prepare(
    "INSERT INTO webhook_endpoints (shop_id, url, topics) VALUES (?, ?, ?) ON CONFLICT (shop_id) DO UPDATE SET url = excluded.url, topics = excluded.topics",
  );
  const remove = db.prepare("DELETE FROM webhook_endpoints WHERE shop_id = ?");
  const newest = db.prepare<{ version: number; sealed: Uint8Array }, [number]>(
    "SELECT version, sealed FROM webhook_secrets WHERE shop_id = ? ORDER BY version DESC LIMIT 1",
  );
  const byVersion = db.prepare<{ sealed: Uint8Array }, [number, number]>("SELECT sealed FROM webhook_secrets WHERE shop_id = ? AND version = ?");
  const all = db.prepare<{ sealed: Uint8Array }, [number]>("SELECT sealed FROM webhook_secrets WHERE shop_id = ? ORDER BY version DESC");
  const addSecret = db.prepare("INSERT INTO webhook_secrets (shop_id, version, sealed, created_at) VALUES (?, ?, ?, ?)");
  const purpose = (shopId: number) => `webhook ${shopId}`;

  function read(shopId: number): WebhookSettings {
    const found = find.get(shopId);
    return found === null ? { url: null, topics: [] } : { url: found.url, topics: JSON.parse(found.topics) };
  }

  /** Sealing is asynchronous and so comes before the transaction, which takes the secret only if there is no newer one by then. */
  async function makeSecret(shopId: number, now: number, unlessThereIsOne: boolean): Promise<void> {
    const sealed = await vault.seal(`whsec_${random(32).toBase64()}`, purpose(shopId));
    db.transaction(() => {
      const last = newest.get(shopId);
      if (last === null || !unlessThereIsOne) addSecret.run(shopId, (last?.version ?? 0) + 1, sealed, now);
    }).immediate();
  }

  async function secret(shopId: number, now: number): Promise<string> {
    if (newest.get(shopId) === null) await makeSecret(shopId, now, true);
    return vault.open(newest.get(shopId)?.sealed ?? new Uint8Array(), purpose(shopId));
  }

  return {
    async settings(shopId) {
      return read(shopId);
    },

    async set(shopId, change, now) {
      if (newest.get(shopId) === null) await makeSecret(shopId, now, true);
      return db
        .transaction(() => {
          const settings = { ...read(shopId), ...change };
          write.run(shopId, settings.url, JSON.stringify(settings.topics));
          return settings;
        })
        .immediate();
    },

    async clear(shopId) {
      remove.run(shopId);
    },

    secret,

    async secretOf(shopId, version) {
      const found = byVersion.get(shopId, version);
      if (found === null) throw new SdsError("failed", `the signing secret ${version} of the shop is missing`);
      return vault.open(found.sealed, purpose(shopId));
    },

    async secrets(shopId) {
      return Promise.all(all.all(shopId).map(({ sealed }) => vault.open(sealed, purpose(shopId))));
    },

    async rotateSecret(shopId, now) {
      await makeSecret(shopId, now, false);
      return secret(shopId, now);
    },
  };
}
