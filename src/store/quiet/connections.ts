import { CONTRACTS_END_AFTER_MS, type ConnectionKind, type Tokens } from "../../domain/platform/connection.ts";
import { beingRemoved } from "../../domain/shop.ts";
import type { Vault } from "../files/vault.ts";
import type { ConnectionStore, ConnectionWarning } from "../port/connections.ts";
import { keepConnectionAlert } from "./alerts.ts";
import { noteInstallation, removeConnection, uninstallations } from "./installations.ts";
import { type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";
import { addShop, findShop, newIntakeSecret } from "./shops.ts";

interface StoredConnection {
  kind: ConnectionKind;
  scopes: string;
  expiresAt: number | null;
  connectedAt: number;
  eventsSince: number;
  trouble: string | null;
  troubleSince: number | null;
}

type SealTokens = (shopId: number, tokens: Tokens) => Promise<Uint8Array>;

/** Minimum time between two log lines about the same warning. */
const LOGGED_EVERY_MS = 86_400_000;

/**
 * Maximum difference between our clock and the platform's clock. Our clock decides when mirrored contracts are
 * cancelled.
 */
const CLOCK_DIFFERENCE_MS = 3_600_000;

/** Returns the purpose for which `Vault` seals a shop's tokens. */
export const tokensPurpose = (shopId: number) => `tokens ${shopId}`;

export function connectionStore(
  db: QuietDatabase,
  vault: Vault,
  random: (bytes: number) => Uint8Array,
): ConnectionStore {
  const seal: SealTokens = (shopId, tokens) => vault.seal(JSON.stringify(tokens), tokensPurpose(shopId));

  return {
    ...renewals(db, seal),
    ...exchanges(db, vault, random),
    ...uninstallations(db),
    ...warnings(db),

    async find(shopId) {
      const stored = await db.get<StoredConnection>(
        sql`SELECT kind, scopes, expires_at AS "expiresAt", connected_at AS "connectedAt",
            events_since AS "eventsSince", trouble, trouble_since AS "troubleSince"
          FROM connections WHERE shop_id = ${shopId}`,
      );
      return stored && { ...stored, scopes: stored.scopes.split(",").filter((scope) => scope !== "") };
    },

    async tokens(shopId) {
      const stored = await db.get<{ sealed: Uint8Array }>(
        sql`SELECT sealed FROM connections WHERE shop_id = ${shopId}`,
      );
      if (stored === undefined) return undefined;
      return JSON.parse(await vault.openOften(stored.sealed, tokensPurpose(shopId))) as Tokens;
    },

    async connect(shopId, kind, tokens, scopes, now) {
      const sealed = await seal(shopId, tokens);
      const { expiresAt } = tokens;
      await db.transaction(() => storeConnection({ shopId, kind, sealed, expiresAt, scopes, connectedAt: now }));
    },

    async setScopes(shopId, scopes) {
      await db.run(sql`UPDATE connections SET scopes = ${scopes.join(",")} WHERE shop_id = ${shopId}`);
    },

    async setTrouble(shopId, trouble, now) {
      // Reads first: most calls change nothing, so they need no transaction.
      const isOther = sql`shop_id = ${shopId} AND trouble IS DISTINCT FROM ${trouble}`;
      if ((await db.get(sql`SELECT 1 AS one FROM connections WHERE ${isOther}`)) === undefined) return false;
      return db.transaction(function* () {
        const changed = yield* tx.run(
          sql`UPDATE connections SET trouble = ${trouble}, trouble_since = ${trouble === null ? null : now}
            WHERE ${isOther}`,
        );
        if (changed > 0) yield* keepConnectionAlert(shopId, trouble, now);
        return changed > 0;
      });
    },

    async disconnect(shopId, before) {
      return db.transaction(() => removeConnection(shopId, before));
    },
  };
}

interface SealedConnection {
  shopId: number;
  kind: ConnectionKind;
  sealed: Uint8Array;
  expiresAt: number | null;
  scopes: readonly string[];
  connectedAt: number;
}

/**
 * Stores a connection. After an uninstallation, the previous connection's `events_since` is kept. The shop is loaded
 * again if the mirror may have marked contracts as ended. These contracts may still be active on the platform.
 */
function* storeConnection(connection: SealedConnection): TransactionWork<void> {
  const { shopId, kind, sealed, expiresAt, scopes, connectedAt } = connection;
  yield* tx.run(
    sql`INSERT INTO connections (shop_id, kind, sealed, expires_at, scopes, connected_at, events_since, load_pending)
      VALUES (${shopId}, ${kind}, ${sealed}, ${expiresAt}, ${scopes.join(",")}, ${connectedAt},
        coalesce((SELECT events_since FROM uninstallations WHERE shop_id = ${shopId}), ${connectedAt}),
        NOT EXISTS (SELECT 1 FROM syncs
          WHERE shop_id = ${shopId} AND kind = 'full' AND last_ended_at IS NOT NULL))
      ON CONFLICT (shop_id) DO UPDATE SET kind = excluded.kind, sealed = excluded.sealed,
        expires_at = excluded.expires_at, scopes = excluded.scopes, connected_at = excluded.connected_at,
        renewing = NULL, renewing_until = NULL, trouble = NULL, trouble_since = NULL`,
  );
  const mayHaveEnded = yield* tx.run(
    sql`DELETE FROM uninstallations WHERE shop_id = ${shopId}
      AND (contracts_ended OR uninstalled_at <= ${connectedAt - CONTRACTS_END_AFTER_MS + CLOCK_DIFFERENCE_MS})`,
  );
  if (mayHaveEnded > 0) yield* forgetLoad(shopId);
  yield* keepConnectionAlert(shopId, null, connectedAt);
  yield* tx.run(sql`DELETE FROM uninstallations WHERE shop_id = ${shopId}`);
  yield* tx.run(sql`DELETE FROM platform_warnings WHERE shop_id = ${shopId}`);
}

/**
 * Marks a shop as not loaded. If the shop had no reconciliation yet, the time of its last load is kept as the time of a
 * reconciliation. So no change since that load is missed.
 */
function* forgetLoad(shopId: number): TransactionWork<void> {
  yield* tx.run(
    sql`INSERT INTO syncs (shop_id, kind, last_started_at, last_changed, last_ended_at)
      SELECT shop_id, 'changes', last_started_at, 0, last_ended_at FROM syncs
      WHERE shop_id = ${shopId} AND kind = 'full' AND last_ended_at IS NOT NULL
      ON CONFLICT (shop_id, kind) DO UPDATE SET
        last_started_at = coalesce(syncs.last_started_at, excluded.last_started_at),
        last_ended_at = coalesce(syncs.last_ended_at, excluded.last_ended_at)`,
  );
  yield* tx.run(
    sql`UPDATE syncs SET run = NULL, last_started_at = NULL, last_ended_at = NULL
      WHERE shop_id = ${shopId} AND kind = 'full'`,
  );
  yield* tx.run(sql`UPDATE connections SET load_pending = true WHERE shop_id = ${shopId}`);
}

function exchanges(
  db: QuietDatabase,
  vault: Vault,
  random: (bytes: number) => Uint8Array,
): Pick<ConnectionStore, "beginExchange" | "extendExchange" | "install" | "endExchange" | "endAllExchanges"> {
  const end = (domain: string, process: string) =>
    sql`DELETE FROM token_exchanges WHERE domain = ${domain} AND process = ${process}`;

  return {
    async beginExchange(domain, process, now, until) {
      return db.transaction(function* () {
        // Removes expired reservations of all shops. Processes that were killed may have left them.
        yield* tx.run(sql`DELETE FROM token_exchanges WHERE ends_at < ${now}`);
        const begun = yield* tx.run(
          sql`INSERT INTO token_exchanges (domain, process, ends_at) VALUES (${domain}, ${process}, ${until})
            ON CONFLICT DO NOTHING`,
        );
        return begun > 0;
      });
    },

    async extendExchange(domain, process, until) {
      await db.run(
        sql`UPDATE token_exchanges SET ends_at = ${until} WHERE domain = ${domain} AND process = ${process}`,
      );
    },

    async install(process, { shop: newShop, kind, tokens, scopes, connectedAt }) {
      const { domain } = newShop;
      const installed = await db.transaction(function* () {
        if ((yield* tx.run(end(domain, process))) === 0) return "lost" as const;
        const shop =
          (yield* findShop(domain)) ??
          (yield* addShop(db, newShop, newIntakeSecret(vault, random, domain), connectedAt));
        if (shop === undefined) return undefined;
        const sealed = vault.sealNow(JSON.stringify(tokens), tokensPurpose(shop.id));
        const { expiresAt } = tokens;
        yield* noteInstallation(shop.id, scopes, connectedAt);
        yield* storeConnection({ shopId: shop.id, kind, sealed, expiresAt, scopes, connectedAt });
        return shop;
      });
      if (installed === undefined) throw beingRemoved(domain);
      return installed === "lost" ? undefined : installed;
    },

    async endExchange(domain, process) {
      await db.run(end(domain, process));
    },

    async endAllExchanges() {
      await db.run(sql`DELETE FROM token_exchanges`);
    },
  };
}

function warnings(db: QuietDatabase): Pick<ConnectionStore, "warn" | "endWarning" | "warnings" | "shopMovedTo"> {
  return {
    async warn(shopId, kind, text, now) {
      const changed = await db.run(
        sql`INSERT INTO platform_warnings (shop_id, kind, text, since, logged_at)
          SELECT shop_id, ${kind}, ${text}, ${now}, ${now} FROM connections WHERE shop_id = ${shopId}
          ON CONFLICT (shop_id, kind) DO UPDATE SET text = excluded.text, logged_at = excluded.logged_at,
            since = CASE WHEN platform_warnings.text = excluded.text THEN platform_warnings.since
              ELSE excluded.since END
          WHERE platform_warnings.text <> excluded.text OR platform_warnings.logged_at <= ${now - LOGGED_EVERY_MS}`,
      );
      return changed > 0;
    },

    async endWarning(shopId, kind) {
      await db.run(sql`DELETE FROM platform_warnings WHERE shop_id = ${shopId} AND kind = ${kind}`);
    },

    async warnings(shopId) {
      return db.all<ConnectionWarning>(
        sql`SELECT kind, text, since FROM platform_warnings WHERE shop_id = ${shopId} ORDER BY since, kind`,
      );
    },

    async shopMovedTo(domain) {
      const shop = await db.get<{ id: number }>(
        sql`SELECT shop_id AS id FROM platform_warnings WHERE kind = ${`domain ${domain}`} ORDER BY since LIMIT 1`,
      );
      return shop?.id;
    },
  };
}

function renewals(db: QuietDatabase, seal: SealTokens): Pick<ConnectionStore, "beginRenewal" | "renew" | "endRenewal"> {
  return {
    async beginRenewal(shopId, process, now, until) {
      const begun = await db.run(
        sql`UPDATE connections SET renewing = ${process}, renewing_until = ${until}
          WHERE shop_id = ${shopId} AND (renewing IS NULL OR renewing_until < ${now})
            AND shop_id IN (SELECT id FROM shops WHERE removal_started_at IS NULL)`,
      );
      return begun > 0;
    },

    async renew(shopId, tokens, before) {
      const sealed = await seal(shopId, tokens);
      await db.run(
        sql`UPDATE connections
          SET sealed = ${sealed}, expires_at = ${tokens.expiresAt}, renewing = NULL, renewing_until = NULL
          WHERE shop_id = ${shopId} AND expires_at IS NOT DISTINCT FROM ${before.expiresAt}`,
      );
    },

    async endRenewal(shopId, process) {
      await db.run(
        sql`UPDATE connections SET renewing = NULL, renewing_until = NULL
          WHERE shop_id = ${shopId} AND renewing = ${process}`,
      );
    },
  };
}
