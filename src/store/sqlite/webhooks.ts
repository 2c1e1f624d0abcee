import { and, desc, eq, isNull } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { SdsError } from "../../domain/error.ts";
import type { Vault } from "../files/vault.ts";
import type { WebhookSettings, WebhookStore } from "../port/webhooks.ts";
import { shops, webhookEndpoints, webhookSecrets } from "./schema.ts";

export function webhookStore(db: BunSQLiteDatabase, vault: Vault, random: (bytes: number) => Uint8Array): WebhookStore {
  const purpose = (shopId: number) => `webhook ${shopId}`;
  const secretsOf = (shopId: number) =>
    db.select().from(webhookSecrets).where(eq(webhookSecrets.shopId, shopId)).orderBy(desc(webhookSecrets.version));
  const newest = (shopId: number) => secretsOf(shopId).limit(1).get();

  function read(shopId: number): WebhookSettings {
    const { url, topics } = webhookEndpoints;
    return (
      db.select({ url, topics }).from(webhookEndpoints).where(eq(webhookEndpoints.shopId, shopId)).limit(1).get() ?? {
        url: null,
        topics: [],
      }
    );
  }

  const exists = (shopId: number) =>
    db
      .select({ id: shops.id })
      .from(shops)
      .where(and(eq(shops.id, shopId), isNull(shops.removalStartedAt)))
      .limit(1)
      .get() !== undefined;

  /**
   * Sealing is asynchronous, so it comes before the transaction. A first secret is dropped if another process made one
   * meanwhile, and any secret if the shop was removed.
   */
  async function makeSecret(shopId: number, now: number, { first, overlapMs }: NewSecret): Promise<void> {
    const sealed = Buffer.from(await vault.seal(`whsec_${random(32).toBase64()}`, purpose(shopId)));
    db.transaction(
      () => {
        const last = newest(shopId);
        if ((first && last !== undefined) || !exists(shopId)) return;
        const version = (last?.version ?? 0) + 1;
        const overlapEndsAt = last !== undefined && overlapMs > 0 ? now + overlapMs : null;
        db.insert(webhookSecrets).values({ shopId, version, sealed, createdAt: now, overlapEndsAt }).run();
      },
      { behavior: "immediate" },
    );
  }

  async function secret(shopId: number, now: number): Promise<string> {
    if (newest(shopId) === undefined) await makeSecret(shopId, now, { first: true, overlapMs: 0 });
    const found = newest(shopId);
    if (found === undefined || !exists(shopId)) throw new SdsError("not_found", "the shop was removed");
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
          const before = read(shopId);
          const settings = { ...before, ...change };
          // Another endpoint was never tried.
          const pace = settings.url === before.url ? {} : { pace: null, timedOutAt: null };
          db.insert(webhookEndpoints)
            .values({ shopId, ...settings })
            .onConflictDoUpdate({ target: webhookEndpoints.shopId, set: { ...settings, ...pace } })
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
      const isVersion = and(eq(webhookSecrets.shopId, shopId), eq(webhookSecrets.version, version));
      const found = db.select().from(webhookSecrets).where(isVersion).limit(1).get();
      if (found === undefined) throw new SdsError("failed", `the signing secret ${version} of the shop is missing`);
      return vault.open(found.sealed, purpose(shopId));
    },

    async secrets(shopId) {
      const found = secretsOf(shopId).all();
      return Promise.all(found.map(({ sealed }) => vault.open(sealed, purpose(shopId))));
    },

    async overlapEndsAt(shopId) {
      return newest(shopId)?.overlapEndsAt ?? null;
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
