import type { BulkPart, SyncRun } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { OrderStageStore } from "../../store/port/order-stages.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import type { CustomerNode } from "../api/operations/customers.ts";
import { BulkFailure } from "../bulk/bulk-failure.ts";
import type { ObjectBatch } from "../bulk/file-lines.ts";
import type { BulkOperations } from "../bulk/operations.ts";
import type { ResultReader } from "../bulk/result-reader.ts";
import { sortOrders } from "../bulk/staged-orders.ts";
import { createBulkPartReader, OtherLoad, type SavedRun } from "./bulk-part-reader.ts";
import { planBulk } from "./bulk-plan.ts";
import type { Loader } from "./loader.ts";
import { addCounts, type OnProgress } from "./progress.ts";

/** The parts of a load that come from bulk operations. */
export interface BulkParts {
  /** Decides for a new run which parts these are. @throws PlatformError */
  plan(shop: Shop, startedAt: number, customerTotal: number): Promise<NonNullable<SyncRun["bulk"]>>;
  /** Starts the operations, so that the platform works on all of them while the first file is read. */
  begin(shop: Shop, saved: SavedRun): Promise<void>;
  /** Loads customers. @returns false if they have to be read page by page @throws PlatformError */
  loadCustomers(shop: Shop, saved: SavedRun, onProgress: OnProgress): Promise<boolean>;
  /** Stages the orders, if they are to come from a bulk operation. @throws PlatformError */
  stageOrders(shop: Shop, saved: SavedRun, onProgress: OnProgress): Promise<void>;
}

interface Dependencies {
  client: GraphqlClient;
  operations: BulkOperations;
  readResult: ResultReader;
  loader: Pick<Loader, "loadCustomers">;
  orderStages: OrderStageStore;
  log: Log;
}

export function createBulkParts({ client, operations, readResult, loader, orderStages, log }: Dependencies): BulkParts {
  const parts = createBulkPartReader({ operations, readResult, log });

  async function beginStage(shop: Shop, { save }: SavedRun, part: BulkPart): Promise<void> {
    if (part.stage !== null) return;
    const stage = await orderStages.begin(shop.id);
    if (stage === undefined) throw new BulkFailure("the shop was removed");
    // What another run has left.
    await orderStages.remove(shop.id, stage);
    part.stage = stage;
    await save({});
  }

  return {
    plan: (shop, startedAt, customerTotal) => planBulk(client, shop, startedAt, customerTotal),
    begin: parts.begin,

    async loadCustomers(shop, saved, onProgress) {
      const { run } = saved;
      const isPlanned = run.bulk?.customers !== undefined;
      const target = {
        async store(_: BulkPart, { objects }: ObjectBatch) {
          // The query asks for these fields.
          const nodes = objects as unknown as CustomerNode[];
          const counts = await loader.loadCustomers(shop, nodes, run.counts.skipped);
          run.counts = addCounts(run.counts, counts);
          return objects.length;
        },
      };
      const isDone = await parts.read(shop, saved, "customers", target, onProgress);
      delete run.bulk?.customers;
      // They come again, page by page.
      if (isPlanned && !isDone) run.counts = { ...run.counts, customers: 0, skipped: 0 };
      return isDone;
    },

    async stageOrders(shop, saved, onProgress) {
      const { run } = saved;
      const target = {
        begin: (part: BulkPart) => beginStage(shop, saved, part),
        async store({ stage }: BulkPart, { objects }: ObjectBatch) {
          const { orders, lines } = sortOrders(objects);
          if (await orderStages.add(shop.id, stage ?? 0, orders, lines)) return orders.length;
          throw new OtherLoad("another run has removed the orders");
        },
      };
      await parts.read(shop, saved, "orders", target, onProgress);
      const stage = run.bulk?.orders?.stage;
      if (stage != null) await orderStages.complete(shop.id, stage);
      delete run.bulk?.orders;
    },
  };
}
