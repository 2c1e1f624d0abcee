import type { Database } from "bun:sqlite";
import { and, eq, isNull, ne, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { SdsError } from "../../domain/error.ts";
import { beingRemoved, type Shop } from "../../domain/shop.ts";
import type { Vault } from "../files/vault.ts";
import { intakePurpose, type ShopStore } from "../port/shops.ts";
import { shops } from "./schema.ts";
import { shopRemoval } from "./shop-removal.ts";

const columns = {
  id: shops.id,
  domain: shops.domain,
  plan: shops.plan,
  currency: shops.currency,
  createdAt: shops.createdAt,
};

/** A shop that is being removed is served to nobody. */
const isServed = isNull(shops.removalStartedAt);

export function shopStore(
  raw: Database,
  db: BunSQLiteDatabase,
  vault: Vault,
  random: (bytes: number) => Uint8Array,
): ShopStore {
  // Raw SQL, because every platform webhook and every post to the intake runs it.
  const byDomain = raw.prepare<Shop, [string]>(
    `SELECT id, domain, plan, currency, created_at AS createdAt FROM shops
     WHERE domain = ? AND removal_started_at IS NULL`,
  );
  const byId = db
    .select(columns)
    .from(shops)
    .where(and(eq(shops.id, sql.placeholder("id")), isServed))
    .prepare();
  const { planFixed, retryDays, creditTitle, triggers } = shops;
  const settings = db
    .select({ planFixed, retryDays, creditTitle, triggers })
    .from(shops)
    .where(and(eq(shops.id, sql.placeholder("shopId")), isServed))
    .prepare();
  const rowCounts = db
    .select({ customers: shops.customerCount, subscriptions: shops.subscriptionCount, orders: shops.orderCount })
    .from(shops)
    .where(and(eq(shops.id, sql.placeholder("shopId")), isServed))
    .prepare();
  const withSecret = raw.prepare<Shop & { sealed: Uint8Array }, [string]>(
    `SELECT id, domain, plan, currency, created_at AS createdAt, intake_secret AS sealed
     FROM shops WHERE domain = ? AND removal_started_at IS NULL`,
  );

  return {
    ...shopRemoval(raw),

    async add(shop, now) {
      const secret = `intake_${random(32).toBase64()}`;
      const intakeSecret = Buffer.from(await vault.seal(secret, intakePurpose(shop.domain)));
      const added = db
        .insert(shops)
        .values({ ...shop, intakeSecret, createdAt: now })
        .onConflictDoNothing()
        .returning(columns)
        .get();
      if (added !== undefined) return added;
      throw byDomain.get(shop.domain) === null
        ? beingRemoved(shop.domain)
        : new SdsError("conflict", `the shop ${shop.domain} exists already`);
    },

    async list() {
      return db.select(columns).from(shops).where(isServed).orderBy(shops.domain).all();
    },

    async find(domain) {
      return byDomain.get(domain) ?? undefined;
    },

    async byId(id) {
      return byId.get({ id });
    },

    async set(domain, change) {
      const changed = db
        .update(shops)
        .set(change)
        .where(and(eq(shops.domain, domain), isServed))
        .returning(columns)
        .get();
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
      const follows = and(eq(shops.id, shopId), eq(shops.planFixed, false), ne(shops.plan, plan), isServed);
      return db.update(shops).set({ plan }).where(follows).returning({ id: shops.id }).all().length > 0;
    },

    async intakeSecret(domain) {
      const found = withSecret.get(domain);
      if (found === null) return undefined;
      const { sealed, ...shop } = found;
      return { shop, secret: await vault.openOften(sealed, intakePurpose(domain)) };
    },
  };
}
