import type { Database } from "bun:sqlite";
import { and, eq, ne, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { SdsError } from "../../domain/error.ts";
import type { Shop } from "../../domain/shop.ts";
import type { ShopStore } from "../shops.ts";
import type { Vault } from "../vault.ts";
import { adminLinks, adminSessions, apiKeys, shops, webhookEndpoints } from "./schema.ts";

/** Tables that can hold millions of rows of a shop, with their key beside `shop_id`. */
const LARGE_TABLES = {
  intake_parts: "number",
  deliveries: "number",
  inbox: "number",
  orders: "billed_at, id",
  subscriptions: "started_at, id",
  customers: "created_at, id",
  occurrences: "type, id",
  platform_webhooks: "id",
};
const REMOVED_AT_ONCE = 2_000;

const columns = {
  id: shops.id,
  domain: shops.domain,
  plan: shops.plan,
  currency: shops.currency,
  createdAt: shops.createdAt,
};

export function shopStore(
  raw: Database,
  db: BunSQLiteDatabase,
  vault: Vault,
  random: (bytes: number) => Uint8Array,
): ShopStore {
  // Raw SQL, because every platform webhook and every post to the intake runs it.
  const byDomain = raw.prepare<Shop, [string]>(
    "SELECT id, domain, plan, currency, created_at AS createdAt FROM shops WHERE domain = ?",
  );
  const byId = db
    .select(columns)
    .from(shops)
    .where(eq(shops.id, sql.placeholder("id")))
    .prepare();
  const { planFixed, retryDays, creditTitle, triggers } = shops;
  const settings = db
    .select({ planFixed, retryDays, creditTitle, triggers })
    .from(shops)
    .where(eq(shops.id, sql.placeholder("shopId")))
    .prepare();
  const rowCounts = db
    .select({ customers: shops.customerCount, subscriptions: shops.subscriptionCount, orders: shops.orderCount })
    .from(shops)
    .where(eq(shops.id, sql.placeholder("shopId")))
    .prepare();
  const withSecret = raw.prepare<Shop & { sealed: Uint8Array }, [string]>(
    "SELECT id, domain, plan, currency, created_at AS createdAt, intake_secret AS sealed FROM shops WHERE domain = ?",
  );
  const removeSteps = Object.entries(LARGE_TABLES).map(([table, key]) => removeStepOf(raw, table, key));
  const purpose = (domain: string) => `intake ${domain}`;

  return {
    async add(shop, now) {
      const secret = `intake_${random(32).toBase64()}`;
      const intakeSecret = Buffer.from(await vault.seal(secret, purpose(shop.domain)));
      const added = db
        .insert(shops)
        .values({ ...shop, intakeSecret, createdAt: now })
        .onConflictDoNothing()
        .returning(columns)
        .get();
      if (added === undefined) throw new SdsError("conflict", `the shop ${shop.domain} exists already`);
      return added;
    },

    async list() {
      return db.select(columns).from(shops).orderBy(shops.domain).all();
    },

    async find(domain) {
      return byDomain.get(domain) ?? undefined;
    },

    async byId(id) {
      return byId.get({ id });
    },

    async set(domain, change) {
      const changed = db.update(shops).set(change).where(eq(shops.domain, domain)).returning(columns).get();
      if (changed === undefined) throw new SdsError("not_found", `there is no shop ${domain}`);
      return changed;
    },

    async settings(shopId) {
      const found = settings.get({ shopId });
      if (found === undefined) throw new SdsError("not_found", "the shop was removed");
      return found;
    },

    async rowCounts(shopId) {
      const found = rowCounts.get({ shopId });
      if (found === undefined) throw new SdsError("not_found", "the shop was removed");
      return found;
    },

    async followPlan(shopId, plan) {
      const follows = and(eq(shops.id, shopId), eq(shops.planFixed, false), ne(shops.plan, plan));
      return db.update(shops).set({ plan }).where(follows).returning({ id: shops.id }).all().length > 0;
    },

    async remove(domain) {
      const shop = byDomain.get(domain);
      if (shop === null) return false;
      // After this no key or session of the shop works and nothing is queued. The rest is removed in steps, so that
      // nobody waits for it.
      db.transaction(
        (tx) => {
          for (const table of [adminLinks, adminSessions, apiKeys, webhookEndpoints])
            tx.delete(table).where(eq(table.shopId, shop.id)).run();
        },
        { behavior: "immediate" },
      );
      for (const removeStep of removeSteps) {
        while (removeStep(shop.id) > 0) await new Promise((resolve) => setImmediate(resolve));
      }
      db.delete(shops).where(eq(shops.id, shop.id)).run();
      return true;
    },

    async intakeSecret(domain) {
      const found = withSecret.get(domain);
      if (found === null) return undefined;
      const { sealed, ...shop } = found;
      return { shop, secret: await vault.openOften(sealed, purpose(domain)) };
    },
  };
}

/** The row count that goes down with a removed row. */
const COUNT_OF: Record<string, string> = {
  customers: "customer_count",
  subscriptions: "subscription_count",
  orders: "order_count",
};

/** A function that removes some of a shop's rows in one transaction. @returns how many, 0 when none is left */
function removeStepOf(db: Database, table: string, key: string): (shopId: number) => number {
  const remove = db.prepare<unknown, [number, number]>(
    `DELETE FROM ${table} WHERE shop_id = ? AND (${key}) IN (
       SELECT ${key} FROM ${table} WHERE shop_id = ? LIMIT ${REMOVED_AT_ONCE}
     )`,
  );
  const count = COUNT_OF[table];
  if (count === undefined) return (shopId) => remove.run(shopId, shopId).changes;
  const subtract = db.prepare<unknown, [number, number]>(`UPDATE shops SET ${count} = ${count} - ? WHERE id = ?`);
  // The counts stay right if the removal is interrupted.
  const step = db.transaction((shopId: number) => {
    const { changes } = remove.run(shopId, shopId);
    subtract.run(changes, shopId);
    return changes;
  });
  return (shopId) => step.immediate(shopId);
}
