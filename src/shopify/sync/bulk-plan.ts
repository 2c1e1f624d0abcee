import type { BulkPart, SyncRun } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import { isoUtc } from "../../lib/time.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { customersBulkQuery, ordersBulkQuery } from "../api/operations/bulk.ts";
import { OLDEST_CONTRACT } from "../api/operations/contracts.ts";
import { ORDERS_COUNT } from "../api/operations/orders.ts";
import { PlatformError } from "../api/platform-error.ts";

/**
 * Fewer objects are loaded faster by pages: ten pages take seconds, and an operation takes a minute even for little.
 */
const MIN_OBJECTS = 2_500;
/** An order is made seconds before its contracts. */
const ORDER_SLACK_MS = 24 * 3_600_000;

/** Decides for a new run which parts come from bulk operations. @throws PlatformError */
export async function planBulk(
  client: GraphqlClient,
  shop: Shop,
  startedAt: number,
  customerTotal: number,
): Promise<NonNullable<SyncRun["bulk"]>> {
  const name = `sds_${startedAt}`;
  const customers = newPart(customersBulkQuery(`${name}_customers`), customerTotal);
  const orders = await planOrders(client, shop, name);
  return { ...(customers && { customers }), ...(orders && { orders }) };
}

async function planOrders(client: GraphqlClient, shop: Shop, name: string): Promise<BulkPart | undefined> {
  const oldest = (await client.query(shop, OLDEST_CONTRACT, {})).subscriptionContracts.nodes[0];
  if (oldest == null) return undefined;
  const filter = `created_at:>='${isoUtc(Date.parse(oldest.createdAt) - ORDER_SLACK_MS)}'`;
  const total = await orderCount(client, shop, filter);
  return newPart(ordersBulkQuery(`${name}_orders`, filter), total);
}

/** @returns 0 if the platform does not count them: then contracts ask for each order */
async function orderCount(client: GraphqlClient, shop: Shop, query: string): Promise<number> {
  try {
    return (await client.query(shop, ORDERS_COUNT, { query })).ordersCount?.count ?? 0;
  } catch (thrown) {
    if (thrown instanceof PlatformError && thrown.reason !== "unavailable") return 0;
    throw thrown;
  }
}

function newPart(query: string, total: number): BulkPart | undefined {
  return total < MIN_OBJECTS ? undefined : { query, operation: null, offset: 0, count: 0, total, stage: null };
}
