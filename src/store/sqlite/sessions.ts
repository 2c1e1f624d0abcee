import { and, eq, gt, isNull } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { SessionStore } from "../port/sessions.ts";
import { adminLinks, adminSessions, meta, shops } from "./schema.ts";

const ADDRESS = "address";

export function sessionStore(db: BunSQLiteDatabase): SessionStore {
  return {
    async addLink(shopId, hash, expiresAt) {
      db.insert(adminLinks)
        .values({ hash: Buffer.from(hash), shopId, expiresAt })
        .run();
    },

    async begin(link, session, now, expiresAt) {
      return db.transaction(
        (tx) => {
          const good = and(
            eq(adminLinks.hash, Buffer.from(link)),
            isNull(adminLinks.usedAt),
            gt(adminLinks.expiresAt, now),
          );
          const used = tx
            .update(adminLinks)
            .set({ usedAt: now })
            .where(good)
            .returning({ shopId: adminLinks.shopId })
            .get();
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
        .select({
          id: shops.id,
          domain: shops.domain,
          plan: shops.plan,
          currency: shops.currency,
          createdAt: shops.createdAt,
        })
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
          const ended = tx
            .delete(adminSessions)
            .where(eq(adminSessions.shopId, shopId))
            .returning({ expiresAt: adminSessions.expiresAt })
            .all();
          return ended.filter(({ expiresAt }) => expiresAt > now).length;
        },
        { behavior: "immediate" },
      );
    },

    async address() {
      return db.select({ value: meta.value }).from(meta).where(eq(meta.name, ADDRESS)).limit(1).get()?.value;
    },

    async noteAddress(address) {
      db.insert(meta)
        .values({ name: ADDRESS, value: address })
        .onConflictDoUpdate({ target: meta.name, set: { value: address } })
        .run();
    },

    async forgetAddress(address) {
      db.delete(meta)
        .where(and(eq(meta.name, ADDRESS), eq(meta.value, address)))
        .run();
    },
  };
}
