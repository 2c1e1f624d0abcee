import { SdsError } from "../../domain/error.ts";
import { beingRemoved, type Shop, type ShopSettings } from "../../domain/shop.ts";
import type { Vault } from "../files/vault.ts";
import { intakePurpose, type ShopStore } from "../port/shops.ts";
import type { Database } from "./database.ts";
import { shopRemoval } from "./shop-removal.ts";

const COLUMNS = 'id::float8 AS id, domain, plan, currency, created_at::float8 AS "createdAt"';
/** A shop that is being removed is served to nobody. */
const IS_SERVED = "removal_started_at IS NULL";

export function shopStore(db: Database, vault: Vault, random: (bytes: number) => Uint8Array): ShopStore {
  const byDomain = (domain: string) =>
    db.get<Shop>(`SELECT ${COLUMNS} FROM shops WHERE domain = $1::text AND ${IS_SERVED}`, [domain]);

  return {
    ...shopRemoval(db),

    async add({ domain, plan, currency, planFixed = false }, now) {
      const sealed = await vault.seal(`intake_${random(32).toBase64()}`, intakePurpose(domain));
      const added = await db.get<Shop>(
        `WITH shop AS (
           INSERT INTO shops (domain, plan, currency, intake_secret, created_at, plan_fixed)
           VALUES ($1::text, $2::text, $3::text, $4::bytea, $5::bigint, $6::boolean) ON CONFLICT DO NOTHING RETURNING *
         ), changes AS (INSERT INTO shop_changes (shop_id) SELECT id FROM shop)
         SELECT ${COLUMNS} FROM shop`,
        [domain, plan, currency, sealed, now, planFixed],
      );
      if (added !== undefined) return added;
      throw (await byDomain(domain)) === undefined
        ? beingRemoved(domain)
        : new SdsError("conflict", `the shop ${domain} exists already`);
    },

    async list() {
      return db.all<Shop>(`SELECT ${COLUMNS} FROM shops WHERE ${IS_SERVED} ORDER BY shops.domain`);
    },

    find: byDomain,

    async byId(id) {
      return db.get<Shop>(`SELECT ${COLUMNS} FROM shops WHERE shops.id = $1::bigint AND ${IS_SERVED}`, [id]);
    },

    async set(domain, { plan, currency, planFixed, retryDays, creditTitle, triggers }) {
      const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
      const changed = await db.get<Shop>(
        `UPDATE shops SET plan = coalesce($2::text, plan), currency = coalesce($3::text, currency),
           plan_fixed = coalesce($4::boolean, plan_fixed), retry_days = coalesce($5::text, retry_days),
           credit_title = coalesce($6::text, credit_title), triggers = coalesce($7::text, triggers)
         WHERE domain = $1::text AND ${IS_SERVED} RETURNING ${COLUMNS}`,
        [
          domain,
          plan ?? null,
          currency ?? null,
          planFixed ?? null,
          json(retryDays),
          creditTitle ?? null,
          json(triggers),
        ],
      );
      if (changed === undefined) throw new SdsError("not_found", `there is no shop ${domain}`);
      return changed;
    },

    async settings(shopId) {
      const found = await db.get<Record<"planFixed" | "retryDays" | "creditTitle" | "triggers", never>>(
        `SELECT plan_fixed AS "planFixed", retry_days AS "retryDays", credit_title AS "creditTitle", triggers
         FROM shops WHERE id = $1::bigint AND ${IS_SERVED}`,
        [shopId],
      );
      if (found === undefined) throw new SdsError("not_found", "the shop was removed");
      return {
        ...found,
        retryDays: JSON.parse(found.retryDays),
        triggers: JSON.parse(found.triggers),
      } as ShopSettings;
    },

    async rowCounts(shopId) {
      const found = await db.get<{ customers: number; subscriptions: number; orders: number }>(
        `SELECT customer_count::float8 AS customers, subscription_count::float8 AS subscriptions,
           order_count::float8 AS orders
         FROM shop_changes JOIN shops ON shops.id = shop_id WHERE shop_id = $1::bigint AND ${IS_SERVED}`,
        [shopId],
      );
      if (found === undefined) throw new SdsError("not_found", "the shop was removed");
      return found;
    },

    async followPlan(shopId, plan) {
      const changed = await db.run(
        `UPDATE shops SET plan = $2::text
         WHERE id = $1::bigint AND NOT plan_fixed AND plan <> $2::text AND ${IS_SERVED}`,
        [shopId, plan],
      );
      return changed > 0;
    },

    async intakeSecret(domain) {
      const found = await db.get<Shop & { sealed: Uint8Array }>(
        `SELECT ${COLUMNS}, intake_secret AS sealed
         FROM shops WHERE domain = $1::text AND ${IS_SERVED}`,
        [domain],
      );
      if (found === undefined) return undefined;
      const { sealed, ...shop } = found;
      return { shop, secret: await vault.openOften(sealed, intakePurpose(domain)) };
    },
  };
}
