import { CryptoHasher } from "bun";
import type { ShopRef } from "../../domain/shop.ts";
import type { Vault } from "../files/vault.ts";
import {
  type AlertAddress,
  type AlertAddressStore,
  MAX_ADDED_IN_A_DAY,
  MAX_ADDRESSES,
  MAX_SAME_IN_A_DAY,
} from "../port/alerts.ts";
import { lockFor, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

const DAY_MS = 86_400_000;

/** SQL of the columns of `AlertAddress`. */
const ADDRESS = sql`number, address, added_at AS "addedAt", confirmed_at AS "confirmedAt"`;

/** Returns the purpose for which `Vault` seals the token of an address. */
export const addressPurpose = (shopId: number) => `alert address ${shopId}`;

/**
 * Makes the store of alert addresses. All links in e-mails to an address have the same random token. Anyone who can
 * read the e-mails can confirm the address or unsubscribe it.
 */
export function alertAddresses(
  db: QuietDatabase,
  vault: Vault,
  random: (bytes: number) => Uint8Array,
): AlertAddressStore {
  return {
    async addresses(shopId) {
      return db.all<AlertAddress>(
        sql`SELECT ${ADDRESS} FROM alert_addresses WHERE shop_id = ${shopId} AND removed_at IS NULL ORDER BY number`,
      );
    },

    async addAddress(shopId, address, now) {
      const { token, hash } = newAddressToken(random);
      const sealed = await vault.seal(token, addressPurpose(shopId));
      let refused: AddressRefusal | undefined;
      // If the transaction returns false, no entry is added to the audit list.
      await db.transaction(function* () {
        refused = yield* refusalOf(db, shopId, address, now);
        if (refused === undefined) yield* add({ shopId, address, sealed, hash, now });
        return refused === undefined;
      });
      return refused ?? "added";
    },

    async removeAddress(shopId, number, now) {
      const removed = await db.transaction(() => remove(db, shopId, number, now));
      return removed === false ? undefined : removed;
    },

    async findAddress(hash) {
      const found = await db.get<AlertAddress & { shopId: number; domain: string }>(
        sql`SELECT ${ADDRESS}, shop_id AS "shopId", domain
          FROM alert_addresses JOIN shops ON shops.id = shop_id
          WHERE hash = ${hash} AND removed_at IS NULL AND removal_started_at IS NULL`,
      );
      if (found === undefined) return undefined;
      const { shopId, domain, ...address } = found;
      return { ...address, shop: { id: shopId, domain } satisfies ShopRef };
    },

    async confirmAddress(hash, now) {
      await db.run(
        sql`UPDATE alert_addresses SET confirmed_at = ${now}
          WHERE hash = ${hash} AND removed_at IS NULL AND confirmed_at IS NULL`,
      );
    },
  };
}

/** Makes the token of an address, with the hash that finds the address. */
export function newAddressToken(random: (bytes: number) => Uint8Array): { token: string; hash: Uint8Array } {
  const token = random(32).toBase64({ alphabet: "base64url", omitPadding: true });
  return { token, hash: new CryptoHasher("sha256").update(token).digest() };
}

interface NewAddress {
  shopId: number;
  address: string;
  sealed: Uint8Array;
  hash: Uint8Array;
  now: number;
}

type AddressRefusal = "known" | "full" | "too many";

/** Returns why an address may not be added. Also deletes removed addresses that were added a day ago or earlier. */
function* refusalOf(
  db: QuietDatabase,
  shopId: number,
  address: string,
  now: number,
): TransactionWork<AddressRefusal | undefined> {
  // Without this lock, two simultaneous requests could together exceed the limits.
  yield* tx.get(sql`SELECT 1 AS one FROM shops WHERE id = ${shopId} ${lockFor(db, "NO KEY UPDATE")}`);
  yield* tx.run(
    sql`DELETE FROM alert_addresses
      WHERE shop_id = ${shopId} AND removed_at IS NOT NULL AND abs(${now} - added_at) >= ${DAY_MS}`,
  );
  const known = yield* tx.all<{ address: string; hash: Uint8Array; addedAt: number; isRemoved: boolean | 0 | 1 }>(
    sql`SELECT address, hash, added_at AS "addedAt", removed_at IS NOT NULL AS "isRemoved"
      FROM alert_addresses WHERE shop_id = ${shopId}`,
  );
  const current = known.filter(({ isRemoved }) => !isRemoved);
  if (current.some((each) => each.address === address)) return "known";
  if (current.length >= MAX_ADDRESSES) return "full";
  const ofToday = known.filter(({ addedAt }) => Math.abs(now - addedAt) < DAY_MS);
  const lower = address.toLowerCase();
  const same = ofToday.filter((each) => [lower, traceOf(lower, each.hash)].includes(each.address.toLowerCase()));
  return ofToday.length >= MAX_ADDED_IN_A_DAY || same.length >= MAX_SAME_IN_A_DAY ? "too many" : undefined;
}

/** Hashes an address with random bytes. The hash stays after a removal, so that a second addition is noticed. */
function traceOf(address: string, random: Uint8Array): string {
  return new CryptoHasher("sha256").update(random).update(address.toLowerCase()).digest("hex");
}

function* add({ shopId, address, sealed, hash, now }: NewAddress): TransactionWork<void> {
  const added = yield* tx.get<{ number: number }>(
    sql`INSERT INTO alert_addresses (shop_id, address, hash, sealed, added_at)
      VALUES (${shopId}, ${address}, ${hash}, ${sealed}, ${now}) RETURNING number`,
  );
  yield* tx.run(
    sql`INSERT INTO alert_notices (shop_id, address, created_at, next_attempt_at)
      VALUES (${shopId}, ${added?.number ?? null}, ${now}, ${now})`,
  );
}

function* remove(db: QuietDatabase, shopId: number, number: number, now: number): TransactionWork<string | false> {
  const isKnown = sql`shop_id = ${shopId} AND number = ${number} AND removed_at IS NULL`;
  const found = yield* tx.get<{ address: string; hash: Uint8Array }>(
    sql`SELECT address, hash FROM alert_addresses WHERE ${isKnown} ${lockFor(db, "NO KEY UPDATE")}`,
  );
  if (found === undefined) return false;
  const trace = traceOf(found.address, found.hash);
  yield* tx.run(sql`UPDATE alert_addresses SET address = ${trace}, removed_at = ${now} WHERE ${isKnown}`);
  yield* tx.run(sql`DELETE FROM alert_notices WHERE shop_id = ${shopId} AND address = ${number}`);
  return found.address;
}
