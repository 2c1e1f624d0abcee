import { and, eq, isNull, lt, or, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { Tokens } from "../../domain/platform/connection.ts";
import type { Vault } from "../files/vault.ts";
import { type ConnectionStore, tokensPurpose } from "../port/connections.ts";
import { connections } from "./schema.ts";

export function connectionStore(db: BunSQLiteDatabase, vault: Vault): ConnectionStore {
  // Prepared, because every query to the platform reads it.
  const byShop = db
    .select()
    .from(connections)
    .where(eq(connections.shopId, sql.placeholder("shopId")))
    .prepare();
  const of = (shopId: number) => byShop.get({ shopId });
  const seal = async (shopId: number, tokens: Tokens) =>
    Buffer.from(await vault.seal(JSON.stringify(tokens), tokensPurpose(shopId)));

  return {
    async find(shopId) {
      const found = of(shopId);
      if (found === undefined) return undefined;
      const { kind, scopes, expiresAt, connectedAt, eventsSince, trouble } = found;
      return {
        kind,
        scopes: scopes.split(",").filter((scope) => scope !== ""),
        expiresAt,
        connectedAt,
        eventsSince,
        trouble,
      };
    },

    async list() {
      return db
        .select({ shopId: connections.shopId })
        .from(connections)
        .orderBy(connections.shopId)
        .all()
        .map(({ shopId }) => shopId);
    },

    async tokens(shopId) {
      const found = of(shopId);
      if (found === undefined) return undefined;
      return JSON.parse(await vault.openOften(found.sealed, tokensPurpose(shopId))) as Tokens;
    },

    async connect(shopId, kind, tokens, scopes, now) {
      const sealed = await seal(shopId, tokens);
      const { expiresAt } = tokens;
      const values = {
        kind,
        sealed,
        expiresAt,
        scopes: scopes.join(","),
        connectedAt: now,
        renewing: null,
        renewingUntil: null,
        trouble: null,
      };
      db.insert(connections)
        .values({ shopId, eventsSince: now, ...values })
        .onConflictDoUpdate({ target: connections.shopId, set: values })
        .run();
    },

    async beginRenewal(shopId, process, now, until) {
      const free = or(isNull(connections.renewing), lt(connections.renewingUntil, now));
      const begun = db
        .update(connections)
        .set({ renewing: process, renewingUntil: until })
        .where(and(eq(connections.shopId, shopId), free))
        .returning({ shopId: connections.shopId })
        .all();
      return begun.length > 0;
    },

    async renew(shopId, tokens) {
      const sealed = await seal(shopId, tokens);
      db.update(connections)
        .set({ sealed, expiresAt: tokens.expiresAt, renewing: null, renewingUntil: null })
        .where(eq(connections.shopId, shopId))
        .run();
    },

    async endRenewal(shopId, process) {
      db.update(connections)
        .set({ renewing: null, renewingUntil: null })
        .where(and(eq(connections.shopId, shopId), eq(connections.renewing, process)))
        .run();
    },

    async setScopes(shopId, scopes) {
      db.update(connections)
        .set({ scopes: scopes.join(",") })
        .where(eq(connections.shopId, shopId))
        .run();
    },

    async setTrouble(shopId, trouble) {
      const found = of(shopId);
      if (found === undefined || found.trouble === trouble) return false;
      db.update(connections).set({ trouble }).where(eq(connections.shopId, shopId)).run();
      return true;
    },

    async disconnect(shopId, before) {
      const gone = db
        .delete(connections)
        .where(and(eq(connections.shopId, shopId), lt(connections.connectedAt, before)))
        .returning({ shopId: connections.shopId })
        .all();
      return gone.length > 0;
    },
  };
}
