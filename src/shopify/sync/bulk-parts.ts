import type { BulkPart } from "../../domain/platform/sync.ts";
import type { OrderStageStore } from "../../store/port/order-stages.ts";
import type { CustomerNode } from "../api/operations/customers.ts";
import { BulkFailure, type FileServices } from "../bulk/file-bytes.ts";
import type { BulkServices } from "../bulk/operations.ts";
import { OtherLoad, readBulkPart } from "./bulk-part-reader.ts";
import { type Loader, loadCustomers } from "./loader.ts";
import { type ActiveRun, addCounts, forgetCustomers } from "./progress.ts";
import { sortOrders } from "./staged-orders.ts";

interface BulkLoadServices extends BulkServices, FileServices {
  orderStages: OrderStageStore;
}

/**
 * Loads customers from a bulk operation.
 * @returns false if they have to be read page by page
 * @throws PlatformError
 */
export async function loadBulkCustomers(services: BulkLoadServices & Loader, active: ActiveRun): Promise<boolean> {
  const { shop, run } = active;
  const isPlanned = run.bulk?.customers !== undefined;
  const isDone = await readBulkPart(services, active, "customers", {
    async store(_, { objects }) {
      // The query asks for these fields.
      const nodes = objects as unknown as CustomerNode[];
      const counts = await loadCustomers(services, shop, nodes, run.counts.skipped);
      run.counts = addCounts(run.counts, counts);
      return objects.length;
    },
  });
  delete run.bulk?.customers;
  // They come again, page by page.
  if (isPlanned && !isDone) forgetCustomers(run);
  return isDone;
}

/** Stages the orders, if they are to come from a bulk operation. @throws PlatformError */
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

async function beginStage({ orderStages }: BulkLoadServices, { shop, save }: ActiveRun, part: BulkPart): Promise<void> {
  if (part.stage !== null) return;
  const stage = await orderStages.begin(shop.id);
  if (stage === undefined) throw new BulkFailure("the shop was removed");
  // Removes the orders of earlier runs.
  await orderStages.remove(shop.id, stage);
  part.stage = stage;
  await save();
}
