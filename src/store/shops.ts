import { eq, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { SdsError } from "../domain/error.ts";
import type { Plan, Shop } from "../domain/shop.ts";
import { shops } from "./schema.ts";
import type { Vault } from "./vault.ts";

interface NewShop {
  domain: string;
  plan: Plan;
  currency: string;
}

export interface ShopStore {
  /** @throws SdsError `conflict` */
  add(shop: NewShop, now: number): Promise<Shop>;
  list(): Promise<Shop[]>;
  find(domain: string): Promise<Shop | undefined>;
  /** @throws SdsError `not_found` */
  set(domain: string, change: Partial<Pick<Shop, "plan" | "currency">>): Promise<Shop>;
  /** Removes a shop with all that is held of it. @returns whether there was one */
  remove(domain: string): Promise<boolean>;
  /** What signs the bodies that the billing system posts to /intake; undefined for an unknown shop. */
  intakeSecret(domain: string): Promise<{ shop: Shop; secret: string } | undefined>;
}

const columns = { id: shops.id, domain: shops.domain, plan: shops.plan, currency: shops.currency, createdAt: shops.createdAt };

export function shopStore(db: BunSQLiteDatabase, vault: Vault, random: (bytes: number) => Uint8Array): ShopStore {
  const byDomain = db
    .select(columns)
    .from(shops)
    .where(eq(shops.domain, sql.placeholder("domain")))
    .limit(1)
    .prepare();
  const withSecret = db
    .select({ ...columns, sealed: shops.intakeSecret })
    .from(shops)
    .where(eq(shops.domain, sql.placeholder("domain")))
    .limit(1)
    .prepare();
  const purpose = (domain: string) => `intake ${domain}`;
  /** Opened secrets by what is stored: decrypting costs more than the check it is for. */
  const opened = new Map<string, string>();

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
      return byDomain.get({ domain });
    },

    async set(domain, change) {
      const changed = db.update(shops).set(change).where(eq(shops.domain, domain)).returning(columns).get();
      if (changed === undefined) throw new SdsError("not_found", `there is no shop ${domain}`);
      return changed;
    },

    async remove(domain) {
      return db.delete(shops).where(eq(shops.domain, domain)).returning({ id: shops.id }).get() !== undefined;
    },

    async intakeSecret(domain) {
      const found = withSecret.get({ domain });
      if (found === undefined) return undefined;
      const { sealed, ...shop } = found;
      const stored = sealed.toHex();
      const secret = opened.get(stored) ?? (await vault.open(sealed, purpose(domain)));
      opened.set(stored, secret);
      return { shop, secret };
    },
  };
}
