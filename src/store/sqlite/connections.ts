import { and, eq, isNull, lt, or, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { ConnectionKind, Tokens } from "../../domain/connection.ts";
import type { Vault } from "../vault.ts";
import { connections } from "./schema.ts";

/** How a shop is connected to the platform. Times in epoch milliseconds. */
interface Connection {
  kind: ConnectionKind;
  scopes: string[];
  expiresAt: number | null;
  connectedAt: number;
  /** What happened before is no news: the shop was connected first then. */
  newsSince: number;
  /** Why the platform takes the token no more; null while it does. */
  trouble: string | null;
}

export interface ConnectionStore {
  find(shopId: number): Promise<Connection | undefined>;
  /** Shops with a connection, by id. */
  list(): Promise<number[]>;
  tokens(shopId: number): Promise<Tokens | undefined>;
  /** Connects a shop, or connects it anew. */
  connect(shopId: number, kind: ConnectionKind, tokens: Tokens, scopes: readonly string[], now: number): Promise<void>;
  /**
   * Lets one process renew the tokens at a time: of a rotating pair the second would spend a refresh token that is spent.
   * @returns whether this one may, until `until`
   */
  beginRenewal(shopId: number, process: string, now: number, until: number): Promise<boolean>;
  /** Stores what a renewal gave, a pair in one write, and ends it. */
  renew(shopId: number, tokens: Tokens): Promise<void>;
  /** Ends a renewal that gave nothing. */
  endRenewal(shopId: number, process: string): Promise<void>;
  /** @returns whether this is news */
  setTrouble(shopId: number, trouble: string | null): Promise<boolean>;
  /** Forgets the tokens of a shop that was connected before a time. @returns whether there were any */
  disconnect(shopId: number, before: number): Promise<boolean>;
}

export function connectionStore(db: BunSQLiteDatabase, vault: Vault): ConnectionStore {
  const purpose = (shopId: number) => `tokens ${shopId}`;
  // Prepared, for every question to the platform passes here.
  const byShop = db
    .select()
    .from(connections)
    .where(eq(connections.shopId, sql.placeholder("shopId")))
    .prepare();
  const of = (shopId: number) => byShop.get({ shopId });
  /** Opened tokens, with what they were opened from: decrypting costs more than looking. */
  const opened = new Map<number, { sealed: Uint8Array; tokens: Tokens }>();
  const seal = async (shopId: number, tokens: Tokens) => Buffer.from(await vault.seal(JSON.stringify(tokens), purpose(shopId)));

  return {
    async find(shopId) {
      const found = of(shopId);
      if (found === undefined) return undefined;
      const { kind, scopes, expiresAt, connectedAt, newsSince, trouble } = found;
      return { kind, scopes: scopes.split(",").filter((scope) => scope !== ""), expiresAt, connectedAt, newsSince, trouble };
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
      const { sealed } = found;
      const known = opened.get(shopId);
      if (known !== undefined && Buffer.compare(known.sealed, sealed) === 0) return known.tokens;
      const tokens = JSON.parse(await vault.open(sealed, purpose(shopId))) as Tokens;
      opened.set(shopId, { sealed, tokens });
      return tokens;
    },

    async connect(shopId, kind, tokens, scopes, now) {
      const sealed = await seal(shopId, tokens);
      const { expiresAt } = tokens;
      const values = { kind, sealed, expiresAt, scopes: scopes.join(","), connectedAt: now, renewing: null, renewingUntil: null, trouble: null };
      db.insert(connections)
        .values({ shopId, newsSince: now, ...values })
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
        .set({ sealed, expiresAt: tokens.expiresAt, renewing: null, renewingUntil: null, trouble: null })
        .where(eq(connections.shopId, shopId))
        .run();
    },

    async endRenewal(shopId, process) {
      db.update(connections)
        .set({ renewing: null, renewingUntil: null })
        .where(and(eq(connections.shopId, shopId), eq(connections.renewing, process)))
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
