import type { BulkPart, SyncRun } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import type { JsonObject } from "../../lib/json.ts";
import { isoUtc } from "../../lib/time.ts";
import type { OrderStageStore, StagedLine, StagedOrder } from "../../store/port/order-stages.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { customersBulkQuery, ordersBulkQuery } from "../api/operations/bulk.ts";
import { OLDEST_CONTRACT } from "../api/operations/contracts.ts";
import type { CustomerNode } from "../api/operations/customers.ts";
import { ORDERS_COUNT } from "../api/operations/orders.ts";
import { isTemporary, PlatformError } from "../api/platform-error.ts";
import { BulkFailure, type FileServices } from "../bulk/file-bytes.ts";
import type { BulkServices } from "../bulk/operations.ts";
import { OtherLoad, readBulkPart } from "./bulk-part-reader.ts";
import { type Loader, loadCustomers } from "./loader.ts";
import { type ActiveRun, addCounts, forgetCustomers } from "./progress.ts";

interface BulkLoadServices extends BulkServices, FileServices {
  orderStages: OrderStageStore;
}

/** Minimum size of a bulk operation. Ten pages take seconds, but even a small bulk operation takes a minute. */
const MIN_OBJECTS = 2_500;
/** Margin for orders that are older than their contract. Most such orders are older by seconds. */
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

/** Counts orders. @returns 0 if the platform does not count the orders. Then each order is read with its contract. */
async function orderCount(client: GraphqlClient, shop: Shop, query: string): Promise<number> {
  try {
    return (await client.query(shop, ORDERS_COUNT, { query })).ordersCount?.count ?? 0;
  } catch (thrown) {
    if (thrown instanceof PlatformError && !isTemporary(thrown)) return 0;
    throw thrown;
  }
}

function newPart(query: string, total: number): BulkPart | undefined {
  return total < MIN_OBJECTS ? undefined : { query, operation: null, offset: 0, count: 0, total, stage: null };
}

/** Loads customers from a bulk operation. @returns false if they have to be read page by page @throws PlatformError */
export async function loadBulkCustomers(services: BulkLoadServices & Loader, active: ActiveRun): Promise<boolean> {
  const { shop, run } = active;
  const isPlanned = run.bulk?.customers !== undefined;
  const isDone = await readBulkPart(services, active, "customers", {
    async store(_, { objects }) {
      // The cast is safe, because the bulk query asks for the fields of `CustomerNode`.
      const nodes = objects as unknown as CustomerNode[];
      const counts = await loadCustomers(services, shop, { nodes }, run.counts.skipped);
      run.counts = addCounts(run.counts, counts);
      return objects.length;
    },
  });
  delete run.bulk?.customers;
  // Resets the counts, because all customers are read again, page by page.
  if (isPlanned && !isDone) forgetCustomers(run);
  return isDone;
}

/** Stages the orders, if this load reads them with a bulk operation. @throws PlatformError */
export async function stageOrders(services: BulkLoadServices, active: ActiveRun): Promise<void> {
  const { shop, run } = active;
  const { orderStages } = services;
  await readBulkPart(services, active, "orders", {
    begin: (part) => beginStage(services, active, part),
    async store({ stage }, { objects }) {
      const { orders, lines } = sortOrders(objects);
      if (await orderStages.add(shop.id, stage ?? 0, orders, lines)) return orders.length;
      throw new OtherLoad("another run has removed the orders");
    },
  });
  const stage = run.bulk?.orders?.stage;
  if (stage != null) await orderStages.complete(shop.id, stage);
  delete run.bulk?.orders;
}

/**
 * Divides objects into orders and lines. Leaves `id` and `__parentId` out of their JSON.
 * @throws BulkFailure if an object has no id
 */
function sortOrders(objects: readonly JsonObject[]): { orders: StagedOrder[]; lines: StagedLine[] } {
  const orders: StagedOrder[] = [];
  const lines: StagedLine[] = [];
  for (const { id, __parentId: orderGid, ...fields } of objects) {
    if (typeof id !== "string") throw new BulkFailure("an object of the file has no id");
    const json = JSON.stringify(fields);
    if (orderGid === undefined) orders.push({ gid: id, json });
    else lines.push({ orderGid: String(orderGid), gid: id, json });
  }
  return { orders, lines };
}

async function beginStage({ orderStages }: BulkLoadServices, { shop, save }: ActiveRun, part: BulkPart): Promise<void> {
  if (part.stage !== null) return;
  const stage = await orderStages.begin(shop.id);
  if (stage === undefined) throw new BulkFailure("the shop was removed");
  // Removes the stages of earlier runs.
  await orderStages.remove(shop.id, stage);
  part.stage = stage;
  await save();
}
