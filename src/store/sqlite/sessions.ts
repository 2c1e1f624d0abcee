import { and, eq, gt, isNull, lte } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { Shop } from "../../domain/shop.ts";
import { adminLinks, adminSessions, facts, shops } from "./schema.ts";

/** Who may open the settings page. Tokens are known by their SHA-256 alone; times in epoch milliseconds. */
export interface SessionStore {
  addLink(shopId: number, hash: Uint8Array, now: number, expiresAt: number): Promise<void>;
  /** Uses a link up and begins a session with it. @returns whether the link was good: known, not used and not expired */
  begin(link: Uint8Array, session: Uint8Array, now: number, expiresAt: number): Promise<boolean>;
  /** The shop whose session this is; read from the database each time, for any process may end it. */
  find(session: Uint8Array, now: number): Promise<Shop | undefined>;
  end(session: Uint8Array): Promise<void>;
  /** Ends all sessions of a shop, and links that nobody used. @returns how many sessions were in force */
  endAll(shopId: number, now: number): Promise<number>;
  /** Where a running `serve` listens, for commands that name it; undefined if none said. */
  address(): Promise<string | undefined>;
  noteAddress(address: string): Promise<void>;
  /** Takes the note back, unless another process has put its own in the place. */
  forgetAddress(address: string): Promise<void>;
}

const ADDRESS = "address";

export function sessionStore(db: BunSQLiteDatabase): SessionStore {
  return {
    async addLink(shopId, hash, now, expiresAt) {
      db.transaction(
        (tx) => {
          // What is over goes here, for few links are made.
          tx.delete(adminLinks).where(lte(adminLinks.expiresAt, now)).run();
          tx.delete(adminSessions).where(lte(adminSessions.expiresAt, now)).run();
          tx.insert(adminLinks)
            .values({ hash: Buffer.from(hash), shopId, expiresAt })
            .run();
        },
        { behavior: "immediate" },
      );
    },

    async begin(link, session, now, expiresAt) {
      return db.transaction(
        (tx) => {
          const good = and(eq(adminLinks.hash, Buffer.from(link)), isNull(adminLinks.usedAt), gt(adminLinks.expiresAt, now));
          const used = tx.update(adminLinks).set({ usedAt: now }).where(good).returning({ shopId: adminLinks.shopId }).get();
          if (used === undefined) return false;
          tx.insert(adminSessions)
            .values({ hash: Buffer.from(session), shopId: used.shopId, createdAt: now, expiresAt })
            .run();
          return true;
        },
        { behavior: "immediate" },
      );
    },

    async find(session, now) {
      return db
        .select({ id: shops.id, domain: shops.domain, plan: shops.plan, currency: shops.currency, createdAt: shops.createdAt })
        .from(adminSessions)
        .innerJoin(shops, eq(shops.id, adminSessions.shopId))
        .where(and(eq(adminSessions.hash, Buffer.from(session)), gt(adminSessions.expiresAt, now)))
        .limit(1)
        .get();
    },

    async end(session) {
      db.delete(adminSessions)
        .where(eq(adminSessions.hash, Buffer.from(session)))
        .run();
    },

    async endAll(shopId, now) {
      return db.transaction(
        (tx) => {
          tx.delete(adminLinks).where(eq(adminLinks.shopId, shopId)).run();
          const ended = tx.delete(adminSessions).where(eq(adminSessions.shopId, shopId)).returning({ expiresAt: adminSessions.expiresAt }).all();
          return ended.filter(({ expiresAt }) => expiresAt > now).length;
        },
        { behavior: "immediate" },
      );
    },

    async address() {
      return db.select({ value: facts.value }).from(facts).where(eq(facts.name, ADDRESS)).limit(1).get()?.value;
    },

    async noteAddress(address) {
      db.insert(facts)
        .values({ name: ADDRESS, value: address })
        .onConflictDoUpdate({ target: facts.name, set: { value: address } })
        .run();
    },

    async forgetAddress(address) {
      db.delete(facts)
        .where(and(eq(facts.name, ADDRESS), eq(facts.value, address)))
        .run();
    },
  };
}
