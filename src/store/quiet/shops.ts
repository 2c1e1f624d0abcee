import type { SQL } from "drizzle-orm";
import type { ResourceCounts } from "../../domain/decide/commit.ts";
import { SdsError } from "../../domain/error.ts";
import type { TriggerHandle } from "../../domain/events/trigger.ts";
import type { FormerBranch } from "../../domain/pages/checkpoint.ts";
import type { RetryPlan } from "../../domain/retry-plan.ts";
import { beingRemoved, type Shop } from "../../domain/shop.ts";
import type { Vault } from "../files/vault.ts";
import type { NewShop, ShopRemoval, ShopStore } from "../port/shops.ts";
import { either, parameter, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

const COLUMNS = sql`id, domain, coalesce(first_domain, domain) AS "firstDomain", plan, currency,
  created_at AS "createdAt"`;
/** Condition that hides shops that are being removed. */
const IS_SERVED = sql`removal_started_at IS NULL`;

/**
 * SQL of the id of the shop with this domain or this first domain. So senders may still use the first domain of a
 * renamed shop. Both parameters take the domain.
 */
export const idByDomain: SQL = sql`(SELECT id FROM shops WHERE domain = ${parameter("text")}
  UNION ALL SELECT id FROM shops WHERE first_domain = ${parameter("text")} LIMIT 1)`;

/** Returns the purpose of a sealed intake secret (see `Vault`). A renaming of the shop does not change the purpose. */
export const intakePurpose = (firstDomain: string) => `intake ${firstDomain}`;

const removed = () => new SdsError("not_found", "the shop was removed");

/** Joins the counters of shops. PostgreSQL stores them in another table. */
export function joinCounters(db: QuietDatabase): SQL {
  return either(db, { sqlite: sql``, postgres: sql`JOIN shop_changes ON shop_changes.shop_id = shops.id` });
}

/** Finds a shop in a transaction, also by its first domain. */
export function findShop(domain: string): TransactionWork<Shop | undefined> {
  return tx.get<Shop>(
    sql`SELECT ${COLUMNS} FROM shops WHERE (domain = ${domain} OR first_domain = ${domain}) AND ${IS_SERVED}
      ORDER BY domain = ${domain} DESC LIMIT 1`,
  );
}

/** Lists the ids of shops that are not being removed. @param condition SQL about `shops.id` */
export async function servedShopIds(db: QuietDatabase, condition: SQL): Promise<number[]> {
  const shops = await db.all<{ id: number }>(
    sql`SELECT id FROM shops WHERE ${IS_SERVED} AND (${condition}) ORDER BY id`,
  );
  return shops.map(({ id }) => id);
}

interface StoredShopSettings {
  planFixed: boolean | number;
  /** JSON of the retry plan. */
  retryDays: string;
  creditTitle: string;
  /** JSON array. */
  triggers: string;
}

/** Makes the operations of the port, except the removal of a shop. */
export function shopStore(
  db: QuietDatabase,
  vault: Vault,
  random: (bytes: number) => Uint8Array,
): Omit<ShopStore, keyof ShopRemoval> {
  const byDomain = db.prepare<Shop>(sql`SELECT ${COLUMNS} FROM shops WHERE id = ${idByDomain} AND ${IS_SERVED}`);
  const withSecret = db.prepare<Shop & { sealed: Uint8Array }>(
    sql`SELECT ${COLUMNS}, intake_secret AS sealed FROM shops WHERE id = ${idByDomain} AND ${IS_SERVED}`,
  );

  /** Returns the error for a domain that belongs to another shop, or to a shop that is being removed. */
  async function taken(domain: string): Promise<SdsError> {
    const shop = await byDomain(domain, domain);
    if (shop === undefined) return beingRemoved(domain);
    const by = shop.domain === domain ? "exists already" : `is now ${shop.domain}`;
    return new SdsError("conflict", `the shop ${domain} ${by}`);
  }

  return {
    ...shopSettings(db),

    async add(shop, now) {
      const added = await db.transaction(() => addShop(db, shop, newIntakeSecret(vault, random, shop.domain), now));
      if (added !== undefined) return added;
      throw await taken(shop.domain);
    },

    async rename(domain, newDomain) {
      const renamed = await db.transaction(() => renameShop(domain, newDomain));
      if (renamed !== undefined) return renamed;
      if ((await byDomain(domain, domain))?.domain === domain) throw await taken(newDomain);
      throw new SdsError("not_found", `there is no shop ${domain}`);
    },

    async list() {
      return db.all<Shop>(sql`SELECT ${COLUMNS} FROM shops WHERE ${IS_SERVED} ORDER BY domain`);
    },

    async find(domain) {
      return byDomain(domain, domain);
    },

    async byId(id) {
      return db.get<Shop>(sql`SELECT ${COLUMNS} FROM shops WHERE id = ${id} AND ${IS_SERVED}`);
    },

    owning: (id) => owning(db, id),

    neediest: (limit) => neediest(db, limit),

    async rowCounts(shopId) {
      const counts = await db.get<ResourceCounts>(
        sql`SELECT customer_count AS customers, subscription_count AS subscriptions, order_count AS orders
          FROM shops ${joinCounters(db)} WHERE shops.id = ${shopId} AND ${IS_SERVED}`,
      );
      if (counts === undefined) throw removed();
      return counts;
    },

    formerBranches: (shopId) => formerBranches(db, shopId),

    async intakeSecret(domain) {
      const stored = await withSecret(domain, domain);
      if (stored === undefined) return undefined;
      const { sealed, ...shop } = stored;
      return { shop, secret: await vault.openOften(sealed, intakePurpose(shop.firstDomain)) };
    },
  };
}

/** Hides a shop as if it were being removed. @param at epoch milliseconds; null shows the shop again */
export function* hide(shopId: number, at: number | null): TransactionWork<void> {
  yield* tx.run(sql`UPDATE shops SET removal_started_at = ${at} WHERE id = ${shopId}`);
}

function formerBranches(db: QuietDatabase, shopId: number): Promise<FormerBranch[]> {
  return db.all(sql`SELECT branch, change_count AS "changeCount" FROM former_branches WHERE shop_id = ${shopId}`);
}

function shopSettings(db: QuietDatabase): Pick<ShopStore, "set" | "settings" | "followPlan"> {
  return {
    async set(domain, { plan, currency, planFixed, retryDays, creditTitle, triggers }) {
      const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
      return db.transaction(function* () {
        const changed = yield* tx.get<Shop>(
          sql`UPDATE shops SET plan = coalesce(${plan ?? null}, plan),
            currency = coalesce(${currency ?? null}, currency),
            plan_fixed = coalesce(${planFixed ?? null}, plan_fixed),
            retry_days = coalesce(${json(retryDays)}, retry_days),
            credit_title = coalesce(${creditTitle ?? null}, credit_title),
            triggers = coalesce(${json(triggers)}, triggers)
          WHERE domain = ${domain} AND ${IS_SERVED} RETURNING ${COLUMNS}`,
        );
        if (changed === undefined) throw new SdsError("not_found", `there is no shop ${domain}`);
        return changed;
      });
    },

    async settings(shopId) {
      const stored = await db.get<StoredShopSettings>(
        sql`SELECT plan_fixed AS "planFixed", retry_days AS "retryDays", credit_title AS "creditTitle", triggers
          FROM shops WHERE id = ${shopId} AND ${IS_SERVED}`,
      );
      if (stored === undefined) throw removed();
      const { planFixed, retryDays, creditTitle, triggers } = stored;
      return {
        planFixed: Boolean(planFixed),
        retryDays: JSON.parse(retryDays) as RetryPlan,
        creditTitle,
        triggers: JSON.parse(triggers) as TriggerHandle[],
      };
    },

    async followPlan(shopId, plan) {
      const changed = await db.run(
        sql`UPDATE shops SET plan = ${plan}
          WHERE id = ${shopId} AND NOT plan_fixed AND plan <> ${plan} AND ${IS_SERVED}`,
      );
      return changed > 0;
    },
  };
}

/** Makes an intake secret, and returns it sealed. The shop's billing system signs its posts with the secret. */
export function newIntakeSecret(vault: Vault, random: (bytes: number) => Uint8Array, domain: string): Uint8Array {
  return vault.sealNow(`intake_${random(32).toBase64()}`, intakePurpose(domain));
}

/** Adds a shop and its counters. @returns undefined if the domain exists, even for a shop that is being removed */
export function* addShop(
  db: QuietDatabase,
  shop: NewShop,
  sealed: Uint8Array,
  now: number,
): TransactionWork<Shop | undefined> {
  const added = yield* insertShop(db, shop, sealed, now);
  if (added !== undefined) yield* forgetDeparture(added);
  return added;
}

/**
 * Adds a shop and its counters like `addShop`, but without `forgetDeparture`.
 * @returns undefined if the domain exists, even for a shop that is being removed
 */
export function* insertShop(
  db: QuietDatabase,
  { domain, plan, currency, planFixed = false }: NewShop,
  sealed: Uint8Array,
  now: number,
): TransactionWork<Shop | undefined> {
  const added = yield* tx.get<Shop>(
    sql`INSERT INTO shops (domain, plan, currency, intake_secret, created_at, plan_fixed)
      SELECT ${domain}, ${plan}, ${currency}, ${sealed}, ${now}, ${planFixed}
      WHERE NOT EXISTS (SELECT 1 FROM shops WHERE first_domain = ${domain})
      ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`,
  );
  if (added === undefined) return undefined;
  if (db.engine === "postgres") yield* tx.run(sql`INSERT INTO shop_changes (shop_id) VALUES (${added.id})`);
  return added;
}

/** Forgets that a shop moved to another database, because the shop is here again. */
export function* forgetDeparture({ domain, firstDomain }: Pick<Shop, "domain" | "firstDomain">): TransactionWork<void> {
  yield* tx.run(
    sql`DELETE FROM shop_moves
      WHERE shop_id IS NULL AND (domain IN (${domain}, ${firstDomain}) OR first_domain IN (${domain}, ${firstDomain}))`,
  );
}

/** @returns undefined for an unknown shop, and if the new domain is the current or first domain of another shop */
function* renameShop(domain: string, newDomain: string): TransactionWork<Shop | undefined> {
  const renamed = yield* tx.get<Shop>(
    sql`UPDATE shops SET domain = ${newDomain}, first_domain = coalesce(first_domain, domain)
      WHERE domain = ${domain} AND ${IS_SERVED} AND NOT EXISTS (SELECT 1 FROM shops AS other
        WHERE other.id <> shops.id AND ${newDomain} IN (other.domain, other.first_domain))
      RETURNING ${COLUMNS}`,
  );
  if (renamed === undefined) return undefined;
  yield* forgetDeparture(renamed);
  yield* tx.run(sql`DELETE FROM platform_warnings WHERE shop_id = ${renamed.id} AND kind LIKE 'domain %'`);
  return renamed;
}

async function owning(db: QuietDatabase, id: string): Promise<Shop | undefined> {
  const [owner, ...others] = await db.all<Shop>(
    sql`SELECT ${COLUMNS} FROM shops WHERE ${IS_SERVED} AND id IN (
        SELECT shop_id FROM api_keys WHERE id = ${id} OR fingerprint = ${id}
        UNION SELECT shop_id FROM deliveries WHERE id = ${id})
      LIMIT 2`,
  );
  return others.length === 0 ? owner : undefined;
}

async function neediest(db: QuietDatabase, limit: number): Promise<Shop[]> {
  const waiting = either(db, { sqlite: sql`deliveries INDEXED BY deliveries_due`, postgres: sql`deliveries` });
  return db.all<Shop>(
    sql`SELECT ${COLUMNS} FROM shops
      LEFT JOIN (SELECT shop_id, count(*) AS due FROM ${waiting} WHERE claimable_at IS NOT NULL GROUP BY shop_id)
        AS waiting ON waiting.shop_id = id
      LEFT JOIN (SELECT shop_id, count(*) AS dead FROM deliveries WHERE status = 'dead' GROUP BY shop_id)
        AS died ON died.shop_id = id
      LEFT JOIN (SELECT shop_id, count(*) AS items, sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS failed
        FROM inbox GROUP BY shop_id) AS received ON received.shop_id = id
      WHERE ${IS_SERVED}
      ORDER BY CASE WHEN id IN (SELECT shop_id FROM connections WHERE trouble IS NOT NULL)
          OR id IN (SELECT shop_id FROM platform_warnings WHERE kind LIKE 'operation %') THEN 0 ELSE 1 END,
        coalesce(dead, 0) + coalesce(failed, 0) DESC, coalesce(due, 0) + coalesce(items, 0) DESC, domain
      LIMIT ${limit}`,
  );
}
