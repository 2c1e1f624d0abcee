import { auditEntry, PLATFORM } from "../../domain/audit.ts";
import type { ConnectionStore, Uninstallation } from "../port/connections.ts";
import { entryInsertion } from "./audit.ts";
import { type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

/**
 * Writes an installation into the audit list. Ignores a shop that is connected already, because new tokens are not an
 * installation. Call this before the connection is stored.
 */
export function* noteInstallation(shopId: number, scopes: readonly string[], at: number): TransactionWork<void> {
  const connected = yield* tx.get(sql`SELECT 1 AS one FROM connections WHERE shop_id = ${shopId}`);
  if (connected !== undefined) return;
  const after = { scopes: scopes.join(", ") };
  yield* tx.run(entryInsertion(shopId, auditEntry(PLATFORM, at, "app.installed", { after })));
}

/**
 * Removes a connection and its warnings. Keeps warnings about a new domain: later webhooks may name the new domain.
 */
export function* removeConnection(shopId: number, before: number): TransactionWork<boolean> {
  const removed = yield* tx.run(sql`DELETE FROM connections WHERE shop_id = ${shopId} AND connected_at < ${before}`);
  if (removed === 0) return false;
  yield* tx.run(sql`DELETE FROM alerts WHERE shop_id = ${shopId} AND cause = 'connection'`);
  yield* tx.run(sql`DELETE FROM platform_warnings WHERE shop_id = ${shopId} AND kind NOT LIKE 'domain %'`);
  return true;
}

export function uninstallations(
  db: QuietDatabase,
): Pick<ConnectionStore, "uninstall" | "uninstallation" | "uninstalledBefore" | "noteContractsEnded"> {
  return {
    async uninstall(shopId, uninstalledAt) {
      return db.transaction(function* () {
        yield* tx.run(
          sql`INSERT INTO uninstallations (shop_id, uninstalled_at, events_since)
            SELECT shop_id, ${uninstalledAt}, events_since FROM connections
            WHERE shop_id = ${shopId} AND connected_at < ${uninstalledAt}`,
        );
        const isEnded = yield* removeConnection(shopId, uninstalledAt);
        if (isEnded) yield* tx.run(entryInsertion(shopId, auditEntry(PLATFORM, uninstalledAt, "app.uninstalled")));
        return isEnded;
      });
    },

    async uninstallation(shopId) {
      return db.get<Uninstallation>(
        sql`SELECT shop_id AS "shopId", uninstalled_at AS "uninstalledAt" FROM uninstallations
          WHERE shop_id = ${shopId}`,
      );
    },

    async uninstalledBefore(time) {
      return db.all<Uninstallation>(
        sql`SELECT shop_id AS "shopId", uninstalled_at AS "uninstalledAt" FROM uninstallations
          WHERE uninstalled_at <= ${time} AND NOT contracts_ended ORDER BY shop_id`,
      );
    },

    async noteContractsEnded(shopId, uninstalledAt) {
      await db.run(
        sql`UPDATE uninstallations SET contracts_ended = true
          WHERE shop_id = ${shopId} AND uninstalled_at = ${uninstalledAt}`,
      );
    },
  };
}
