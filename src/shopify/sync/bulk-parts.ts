import type { Shop } from "../../domain/shop.ts";
import type { BulkPart, SyncRun } from "../../domain/sync.ts";
import { isoUtc } from "../../lib/time.ts";
import type { Log } from "../../log.ts";
import type { OrderStageStore } from "../../store/order-stages.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { customersBulkQuery, ordersBulkQuery } from "../api/operations/bulk.ts";
import { OLDEST_CONTRACT } from "../api/operations/contracts.ts";
import type { CustomerNode } from "../api/operations/customers.ts";
import { ORDERS_COUNT } from "../api/operations/orders.ts";
import { PlatformError } from "../api/platform-error.ts";
import { BulkFailure } from "../bulk/bulk-failure.ts";
import type { ObjectBatch } from "../bulk/file-lines.ts";
import type { BulkOperations } from "../bulk/operations.ts";
import type { ResultReader } from "../bulk/result-reader.ts";
import { sortOrders } from "../bulk/staged-orders.ts";
import type { Loader } from "./loader.ts";
import { addCounts, type BulkProgress, type OnProgress, type SyncProgress } from "./progress.ts";

type PartName = keyof NonNullable<SyncRun["bulk"]>;

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

/** A run, and what saves its progress. */
export interface SavedRun {
  run: SyncRun;
  save(change: Partial<SyncRun>): Promise<void>;
}

interface Dependencies {
  client: GraphqlClient;
  operations: BulkOperations;
  readResult: ResultReader;
  loader: Pick<Loader, "loadCustomers">;
  orderStages: OrderStageStore;
  log: Log;
}

/**
 * A shop with fewer is loaded in less time by pages: ten pages take seconds, and an operation takes a minute even if it
 * has little to do.
 */
const MIN_OBJECTS = 2_500;
/** An order is made before its contracts, by seconds. */
const ORDER_SLACK_MS = 24 * 3_600_000;

export function createBulkParts({ client, operations, readResult, loader, orderStages, log }: Dependencies): BulkParts {
  async function planOrders(shop: Shop, name: string): Promise<BulkPart | undefined> {
    const oldest = (await client.query(shop, OLDEST_CONTRACT, {})).subscriptionContracts.nodes[0];
    if (oldest == null) return undefined;
    const filter = `created_at:>='${isoUtc(Date.parse(oldest.createdAt) - ORDER_SLACK_MS)}'`;
    const total = await orderCount(shop, filter);
    return newPart(ordersBulkQuery(`${name}_orders`, filter), total);
  }

  /** @returns 0 if the platform does not count them: then contracts ask for each order */
  async function orderCount(shop: Shop, query: string): Promise<number> {
    try {
      return (await client.query(shop, ORDERS_COUNT, { query })).ordersCount?.count ?? 0;
    } catch (thrown) {
      if (thrown instanceof PlatformError && thrown.reason !== "unavailable") return 0;
      throw thrown;
    }
  }

  /** Reads a part with bulk operations. @returns false if it has to be read page by page */
  async function attempt(shop: Shop, { run }: SavedRun, name: PartName, read: (part: BulkPart) => Promise<void>) {
    const part = run.bulk?.[name];
    if (part === undefined) return false;
    try {
      await read(part);
    } catch (thrown) {
      if (!isBulkTrouble(thrown)) throw thrown;
      warn(shop, name, thrown);
      // The next page saves it. If that fails too, the platform is down, and the next run tries this again.
      delete run.bulk?.[name];
      return false;
    }
    return true;
  }

  function warn(shop: Shop, what: PartName, thrown: Error): void {
    if (thrown instanceof OtherLoad) {
      log.warn("another load of the shop runs; this one reads page by page", { shop: shop.domain, what });
      return;
    }
    const message = "cannot read with a bulk operation of the platform; reading page by page";
    log.warn(message, { shop: shop.domain, what, error: thrown.message });
  }

  /** Waits for the file of a part. One that an earlier run has left, and the platform has no more, begins anew. */
  async function prepare(shop: Shop, saved: SavedRun, name: PartName, part: BulkPart, onProgress: OnProgress) {
    const { run, save } = saved;
    if (part.operation !== null && (await operations.find(shop, part.operation)) === undefined) {
      Object.assign(part, { operation: null, offset: 0, count: 0, stage: null });
      if (name === "customers") run.counts = { ...run.counts, customers: 0 };
    }
    if (part.operation === null) {
      part.operation = await operations.begin(shop, part.query);
      await save({});
    }
    await operations.wait(shop, part.operation, (objectCount) => {
      onProgress(progressOf(run, name, "preparing", objectCount, part.total));
    });
    return part.operation;
  }

  /** Reads the file of a part, and saves after each batch how far it is. */
  async function readPart(
    shop: Shop,
    saved: SavedRun,
    name: PartName,
    onProgress: OnProgress,
    store: (part: BulkPart, batch: ObjectBatch) => Promise<number>,
  ): Promise<boolean> {
    return attempt(shop, saved, name, async (part) => {
      const operation = await prepare(shop, saved, name, part, onProgress);
      if (name === "orders") await beginStage(shop, saved, part);
      for await (const batch of readResult(shop, operation, part.offset)) {
        part.count += await store(part, batch);
        part.offset = batch.end;
        await saved.save({});
        onProgress(progressOf(saved.run, name, "reading", part.count, part.total));
      }
    });
  }

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
    async plan(shop, startedAt, customerTotal) {
      const name = `sds_${startedAt}`;
      const customers = newPart(customersBulkQuery(`${name}_customers`), customerTotal);
      const orders = await planOrders(shop, name);
      return { ...(customers && { customers }), ...(orders && { orders }) };
    },

    async begin(shop, { run, save }) {
      for (const part of Object.values(run.bulk ?? {})) {
        if (part.operation !== null) continue;
        try {
          part.operation = await operations.begin(shop, part.query);
          await save({});
        } catch (thrown) {
          // It is tried again when the part is read. By then another operation may have ended.
          if (!isBulkTrouble(thrown)) throw thrown;
        }
      }
    },

    async loadCustomers(shop, saved, onProgress) {
      const { run } = saved;
      const isPlanned = run.bulk?.customers !== undefined;
      const done = await readPart(shop, saved, "customers", onProgress, async (_, { objects }) => {
        // The query asks for these fields.
        const nodes = objects as unknown as CustomerNode[];
        const counts = await loader.loadCustomers(shop, nodes, run.counts.skipped);
        run.counts = addCounts(run.counts, counts);
        return objects.length;
      });
      delete run.bulk?.customers;
      // They come again, page by page.
      if (isPlanned && !done) run.counts = { ...run.counts, customers: 0, skipped: 0 };
      return done;
    },

    async stageOrders(shop, saved, onProgress) {
      const { run } = saved;
      await readPart(shop, saved, "orders", onProgress, async ({ stage }, { objects }) => {
        const { orders, lines } = sortOrders(objects);
        if (await orderStages.add(shop.id, stage ?? 0, orders, lines)) return orders.length;
        throw new OtherLoad("another run has removed the orders");
      });
      const stage = run.bulk?.orders?.stage;
      if (stage != null) await orderStages.complete(shop.id, stage);
      delete run.bulk?.orders;
    },
  };
}

function newPart(query: string, total: number): BulkPart | undefined {
  return total < MIN_OBJECTS ? undefined : { query, operation: null, offset: 0, count: 0, total, stage: null };
}

function progressOf(
  { counts, stage }: SyncRun,
  what: PartName,
  state: BulkProgress["state"],
  count: number,
  total: number,
): SyncProgress {
  return { counts, stage, done: count / total, bulk: { what, state, count } };
}

/** Another load of the shop stages the orders now. */
class OtherLoad extends BulkFailure {}

/** Whether pages may still work. If the platform is down, they do not either, and their error says so. */
function isBulkTrouble(thrown: unknown): thrown is BulkFailure | PlatformError {
  return thrown instanceof BulkFailure || thrown instanceof PlatformError;
}
