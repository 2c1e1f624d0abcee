import type { Database } from "bun:sqlite";
import type { Resource } from "../../domain/resources.ts";

/** Where a count is: rows up to and with this one are counted. */
export interface CountedTo {
  at: number;
  id: string;
}

export interface CountStore {
  /**
   * Counts the next rows of a shop, so many at most: counting millions in one go would hold up everybody else.
   * @param from null for the first
   * @returns how many, and where to go on; null after the last
   */
  step(shopId: number, resource: Resource, from: CountedTo | null, limit: number): Promise<{ counted: number; to: CountedTo | null }>;
  /** When the shop's last platform webhook came, of those that are still remembered (a week). Epoch milliseconds. */
  lastWebhookAt(shopId: number): Promise<number | null>;
}

/** The sort date by which each table is clustered. */
const SORTED_BY: Record<Resource, string> = { customers: "created_at", subscriptions: "started_at", orders: "billed_at" };

export function countStore(db: Database): CountStore {
  const lastWebhook = db.prepare<{ at: number | null }, [number]>("SELECT max(received_at) AS at FROM platform_webhooks WHERE shop_id = +?");

  function statements(table: Resource) {
    const date = SORTED_BY[table];
    const rest = `FROM ${table} WHERE shop_id = +$shopId AND (${date}, id) > ($at, $id)`;
    return {
      end: db.prepare<CountedTo, { shopId: number; at: number; id: string; limit: number }>(
        `SELECT ${date} AS at, id ${rest} ORDER BY ${date}, id LIMIT 1 OFFSET +$limit - 1`,
      ),
      count: db.prepare<{ n: number }, { shopId: number; at: number; id: string }>(`SELECT count(*) AS n ${rest}`),
    };
  }
  const of = { customers: statements("customers"), subscriptions: statements("subscriptions"), orders: statements("orders") };

  return {
    async step(shopId, resource, from, limit) {
      const after = { shopId, ...(from ?? { at: Number.MIN_SAFE_INTEGER, id: "" }) };
      const end = of[resource].end.get({ ...after, limit });
      return end === null ? { counted: of[resource].count.get(after)?.n ?? 0, to: null } : { counted: limit, to: end };
    },

    async lastWebhookAt(shopId) {
      return lastWebhook.get(shopId)?.at ?? null;
    },
  };
}
