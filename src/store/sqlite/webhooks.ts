import { desc, eq } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { SdsError } from "../../domain/error.ts";
import type { Topic } from "../../domain/event.ts";
import type { Vault } from "../vault.ts";
import { webhookEndpoints, webhookSecrets } from "./schema.ts";

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

export function webhookStore(db: BunSQLiteDatabase, vault: Vault, random: (bytes: number) => Uint8Array): WebhookStore {
  const purpose = (shopId: number) => `webhook ${shopId}`;
  const secretsOf = (shopId: number) => db.select().from(webhookSecrets).where(eq(webhookSecrets.shopId, shopId)).orderBy(desc(webhookSecrets.version));
  const newest = (shopId: number) => secretsOf(shopId).limit(1).get();

  function read(shopId: number): WebhookSettings {
    const { url, topics } = webhookEndpoints;
    return db.select({ url, topics }).from(webhookEndpoints).where(eq(webhookEndpoints.shopId, shopId)).limit(1).get() ?? { url: null, topics: [] };
  }

  /** Sealing is asynchronous and so comes before the transaction, which takes a first secret only if there is none by then. */
  async function makeSecret(shopId: number, now: number, { first }: { first: boolean }): Promise<void> {
    const sealed = Buffer.from(await vault.seal(`whsec_${random(32).toBase64()}`, purpose(shopId)));
    db.transaction(
      () => {
        const last = newest(shopId);
        if (first && last !== undefined) return;
        const version = (last?.version ?? 0) + 1;
        db.insert(webhookSecrets).values({ shopId, version, sealed, createdAt: now }).run();
      },
      { behavior: "immediate" },
    );
  }

  async function secret(shopId: number, now: number): Promise<string> {
    if (newest(shopId) === undefined) await makeSecret(shopId, now, { first: true });
    const found = newest(shopId);
    if (found === undefined) throw new SdsError("not_found", "the shop was removed");
    return vault.open(found.sealed, purpose(shopId));
  }

  return {
    async settings(shopId) {
      return read(shopId);
    },

    async set(shopId, change, now) {
      await secret(shopId, now);
      return db.transaction(
        () => {
          const settings = { ...read(shopId), ...change };
          db.insert(webhookEndpoints)
            .values({ shopId, ...settings })
            .onConflictDoUpdate({ target: webhookEndpoints.shopId, set: settings })
            .run();
          return settings;
        },
        { behavior: "immediate" },
      );
    },

    async clear(shopId) {
      db.delete(webhookEndpoints).where(eq(webhookEndpoints.shopId, shopId)).run();
    },

    secret,

    async secretOf(shopId, version) {
      const found = secretsOf(shopId)
        .all()
        .find((each) => each.version === version);
      if (found === undefined) throw new SdsError("failed", `the signing secret ${version} of the shop is missing`);
      return vault.open(found.sealed, purpose(shopId));
    },

    async secrets(shopId) {
      const found = secretsOf(shopId).all();
      return Promise.all(found.map(({ sealed }) => vault.open(sealed, purpose(shopId))));
    },

    async rotateSecret(shopId, now) {
      await makeSecret(shopId, now, { first: false });
      return secret(shopId, now);
    },
  };
}
