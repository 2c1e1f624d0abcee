import type { SQL } from "drizzle-orm";
import type { AuditEntry } from "../../domain/audit.ts";
import type { Vault } from "../files/vault.ts";
import { addressPurpose, newAddressToken } from "./alert-addresses.ts";
import { tokensPurpose } from "./connections.ts";
import { type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";
import { noticePurpose } from "./settings-page.ts";
import { intakePurpose, newIntakeSecret } from "./shops.ts";
import { newSigningSecret, webhookPurpose } from "./webhooks.ts";

/** A database that no other process uses until `close`. */
export interface LoneDatabase {
  db: QuietDatabase;
  /** The fingerprint of the master key that sealed the secrets; undefined for a database without secrets. */
  sealedWith: string | undefined;
  close(): Promise<void>;
}

/** A table with secrets that the master key seals. */
interface SealedTable<Row extends { sealed: Uint8Array }> {
  rows: SQL;
  /** See `Vault`. */
  purpose: (row: Row) => string;
  store: (row: Row, sealed: Uint8Array) => SQL;
}

interface IntakeRow {
  sealed: Uint8Array;
  id: number;
  domain: string;
}
interface ShopRow {
  sealed: Uint8Array;
  shopId: number;
}
type VersionedRow = ShopRow & { number: number };
type NoticeRow = { sealed: Uint8Array; number: number; session: Uint8Array };

const INTAKE: SealedTable<IntakeRow> = {
  rows: sql`SELECT id, coalesce(first_domain, domain) AS domain, intake_secret AS sealed FROM shops ORDER BY id`,
  purpose: ({ domain }) => intakePurpose(domain),
  store: ({ id }, sealed) => sql`UPDATE shops SET intake_secret = ${sealed} WHERE id = ${id}`,
};
const TOKENS: SealedTable<ShopRow> = {
  rows: sql`SELECT shop_id AS "shopId", sealed FROM connections ORDER BY shop_id`,
  purpose: ({ shopId }) => tokensPurpose(shopId),
  store: ({ shopId }, sealed) => sql`UPDATE connections SET sealed = ${sealed} WHERE shop_id = ${shopId}`,
};
const SIGNING: SealedTable<VersionedRow> = {
  rows: sql`SELECT shop_id AS "shopId", version AS number, sealed FROM webhook_secrets ORDER BY shop_id, version`,
  purpose: ({ shopId }) => webhookPurpose(shopId),
  store: ({ shopId, number }, sealed) =>
    sql`UPDATE webhook_secrets SET sealed = ${sealed} WHERE shop_id = ${shopId} AND version = ${number}`,
};
const ADDRESSES: SealedTable<VersionedRow> = {
  rows: sql`SELECT number, shop_id AS "shopId", sealed FROM alert_addresses ORDER BY number`,
  purpose: ({ shopId }) => addressPurpose(shopId),
  store: ({ shopId, number }, sealed) =>
    sql`UPDATE alert_addresses SET sealed = ${sealed} WHERE shop_id = ${shopId} AND number = ${number}`,
};
const NOTICES: SealedTable<NoticeRow> = {
  rows: sql`SELECT number, session, sealed FROM admin_notices ORDER BY number`,
  purpose: ({ session }) => noticePurpose(session),
  store: ({ number }, sealed) => sql`UPDATE admin_notices SET sealed = ${sealed} WHERE number = ${number}`,
};

/** Seals every secret with another master key. The same transaction stores the fingerprint of that key. */
export async function resealSecrets(db: QuietDatabase, from: Vault, to: Vault): Promise<void> {
  await db.transaction(function* () {
    yield* reseal(INTAKE, from, to);
    yield* reseal(TOKENS, from, to);
    yield* reseal(SIGNING, from, to);
    yield* reseal(ADDRESSES, from, to);
    yield* reseal(NOTICES, from, to);
    yield* storeFingerprint(to);
  });
}

function* reseal<Row extends { sealed: Uint8Array }>(
  { rows, purpose, store }: SealedTable<Row>,
  from: Vault,
  to: Vault,
): TransactionWork<void> {
  for (const row of yield* tx.all<Row>(rows)) {
    const secret = from.openNow(row.sealed, purpose(row));
    yield* tx.run(store(row, to.sealNow(secret, purpose(row))));
  }
}

/** What a shop loses if the master key is lost. */
export interface LostSecrets {
  domain: string;
  hasSigningSecret: boolean;
  isConnected: boolean;
}

/** Lists what `replaceSecrets` would replace. */
export async function lostSecrets(db: QuietDatabase): Promise<LostSecrets[]> {
  const shops = await db.all<LostSecrets>(
    sql`SELECT domain, shops.id IN (SELECT shop_id FROM webhook_secrets) AS "hasSigningSecret",
        shops.id IN (SELECT shop_id FROM connections) AS "isConnected"
      FROM shops WHERE removal_started_at IS NULL ORDER BY domain`,
  );
  return shops.map((shop) => ({
    ...shop,
    hasSigningSecret: Boolean(shop.hasSigningSecret),
    isConnected: Boolean(shop.isConnected),
  }));
}

/**
 * Replaces all secrets after their master key was lost. The same transaction stores the new key's fingerprint. Tokens
 * of the platform cannot be replaced, so this removes the connections of all shops.
 * @param entry goes into the audit list of each shop
 */
export async function replaceSecrets(
  db: QuietDatabase,
  to: Vault,
  random: (bytes: number) => Uint8Array,
  entry: AuditEntry,
): Promise<void> {
  await db.transaction(function* () {
    for (const row of yield* tx.all<IntakeRow>(INTAKE.rows))
      yield* tx.run(INTAKE.store(row, newIntakeSecret(to, random, row.domain)));
    // Replaces the secret of every version, because queued deliveries name the versions of their secrets.
    for (const row of yield* tx.all<VersionedRow>(SIGNING.rows))
      yield* tx.run(SIGNING.store(row, to.sealNow(newSigningSecret(random), SIGNING.purpose(row))));
    for (const row of yield* tx.all<VersionedRow>(ADDRESSES.rows)) {
      const { token, hash } = newAddressToken(random);
      yield* tx.run(ADDRESSES.store(row, to.sealNow(token, ADDRESSES.purpose(row))));
      yield* tx.run(
        sql`UPDATE alert_addresses SET hash = ${hash} WHERE shop_id = ${row.shopId} AND number = ${row.number}`,
      );
    }
    yield* tx.run(sql`DELETE FROM connections`);
    yield* tx.run(sql`DELETE FROM admin_notices`);
    yield* tx.run(
      sql`INSERT INTO audit (shop_id, at, who, origin, action)
        SELECT id, ${entry.at}, ${entry.who}, ${entry.from ?? ""}, ${entry.action}
        FROM shops WHERE removal_started_at IS NULL`,
    );
    yield* storeFingerprint(to);
  });
}

function* storeFingerprint({ fingerprint }: Vault): TransactionWork<void> {
  yield* tx.run(sql`UPDATE meta SET value = ${fingerprint} WHERE name = 'master_key'`);
}
