import { NO_COUNTS, type SyncCounts, type SyncRun } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import type { InboxStore } from "../../store/port/inbox.ts";
import type { OrderStageStore } from "../../store/port/order-stages.ts";
import type { SyncStore } from "../../store/port/syncs.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import {
  ALL_CONTRACTS,
  type ContractNode,
  type ContractWithAttempts,
  NEWEST_CONTRACT,
} from "../api/operations/contracts.ts";
import { ALL_CUSTOMERS, CUSTOMERS_COUNT } from "../api/operations/customers.ts";
import type { EventScope } from "../contracts/mirror.ts";
import type { SavedRun } from "./bulk-part-reader.ts";
import type { BulkParts } from "./bulk-parts.ts";
import type { Loader } from "./loader.ts";
import { type ReadPage, readPages, workOnTwo } from "./pages.ts";
import { addCounts, type OnProgress } from "./progress.ts";

interface Dependencies {
  client: GraphqlClient;
  loader: Loader;
  bulkParts: BulkParts;
  syncs: SyncStore;
  orderStages: Pick<OrderStageStore, "remove">;
  inbox: Pick<InboxStore, "waitingSubjects">;
  now: () => number;
}

export interface LoadOptions {
  /** Whether events are queued for what the load changes. */
  events: boolean;
  /** Uses no bulk operations, however large the shop is. */
  pages?: boolean;
}

/**
 * Loads everything that the platform has of a shop: customers and orders of a large shop with bulk operations, all else
 * page by page. A run that was interrupted continues at its last page, or at its last place in a file.
 * @throws PlatformError; then the next run continues
 */
export async function runFullSync(
  dependencies: Dependencies,
  shop: Shop,
  { events, pages = false }: LoadOptions,
  onProgress: OnProgress,
): Promise<SyncCounts> {
  const { bulkParts, syncs, orderStages, now } = dependencies;
  const run: SyncRun = {
    ...((await syncs.unfinished(shop.id, "full")) ?? (await newRun(dependencies, shop, pages))),
    events,
  };
  if (pages) {
    run.bulk = {};
    await orderStages.remove(shop.id);
  }
  const saved: SavedRun = {
    run,
    async save(change) {
      Object.assign(run, change);
      await syncs.save(shop.id, "full", run);
    },
  };
  await saved.save({});
  await bulkParts.begin(shop, saved);
  if (run.stage === "customers") {
    const isLoaded = await bulkParts.loadCustomers(shop, saved, onProgress);
    if (!isLoaded) await loadCustomers(dependencies, shop, saved, onProgress);
    dependencies.loader.endCustomers(shop, run.counts.skipped);
    await saved.save({ stage: "orders", cursor: null });
  }
  if (run.stage === "orders") {
    await bulkParts.stageOrders(shop, saved, onProgress);
    // The first page saves it.
    run.stage = "subscriptions";
  }
  await loadContracts(dependencies, shop, saved, onProgress);
  await orderStages.remove(shop.id);
  await syncs.complete(shop.id, "full", run.startedAt, run.counts.changed, now());
  return run.counts;
}

async function newRun(
  { client, bulkParts, now }: Dependencies,
  shop: Shop,
  pages: boolean,
): Promise<Omit<SyncRun, "events">> {
  // An answer has to come first: it tells the platform's time.
  const customerTotal = (await client.query(shop, CUSTOMERS_COUNT, {})).customersCount?.count ?? 0;
  const startedAt = now();
  const bulk = pages ? {} : await bulkParts.plan(shop, startedAt, customerTotal);
  return { startedAt, stage: "customers", cursor: null, counts: NO_COUNTS, customerTotal, bulk };
}

async function loadCustomers(
  { client, loader, now }: Dependencies,
  shop: Shop,
  { run, save }: SavedRun,
  onProgress: OnProgress,
): Promise<void> {
  const beginAnew = () => {
    run.counts = { ...run.counts, customers: 0, skipped: 0 };
  };
  const pages = readPages(client, shop, ALL_CUSTOMERS, "customers", { after: run.cursor, beginAnew }, now);
  for await (const { nodes, endCursor } of pages) {
    const counts = await loader.loadCustomers(shop, nodes, run.counts.skipped);
    await save({ cursor: endCursor, counts: addCounts(run.counts, counts) });
    const done = run.customerTotal ? run.counts.customers / run.customerTotal : undefined;
    onProgress({ counts: run.counts, stage: run.stage, done });
  }
}

async function loadContracts(
  { client, loader, inbox, now }: Dependencies,
  shop: Shop,
  { run, save }: SavedRun,
  onProgress: OnProgress,
): Promise<void> {
  const waiting = await inbox.waitingSubjects(shop.id);
  const eventsOf = (node: ContractNode): EventScope => {
    if (run.events) return "all";
    // A change during the run, or one whose platform webhook still waits, queues its events even if this run reads it
    // first.
    const isLive = Date.parse(node.updatedAt) >= run.startedAt || waiting.has(node.id);
    return isLive ? "since_connected" : "none";
  };
  const newestAt = (await client.query(shop, NEWEST_CONTRACT, {})).subscriptionContracts.nodes[0]?.createdAt;
  let oldestMs: number | undefined;
  const beginAnew = () => {
    run.counts = { ...run.counts, subscriptions: 0, orders: 0 };
  };
  const pages = readPages(client, shop, ALL_CONTRACTS, "subscriptionContracts", { after: run.cursor, beginAnew }, now);
  const work = ({ nodes, requestedAt }: ReadPage<ContractWithAttempts>) =>
    loader.loadContracts(shop, { nodes, requestedAt }, eventsOf);
  await workOnTwo(pages, work, async ({ nodes, endCursor }, counts) => {
    await save({ cursor: endCursor, counts: addCounts(run.counts, counts) });
    // Else the engine collects so late that a load of 20,000 contracts takes 206 MiB instead of 153, in the same time.
    Bun.gc(true);
    oldestMs ??= Date.parse(nodes[0]?.createdAt ?? "");
    const lastMs = Date.parse(nodes.at(-1)?.createdAt ?? "");
    const done = newestAt === undefined ? undefined : (lastMs - oldestMs) / (Date.parse(newestAt) - oldestMs);
    onProgress({ counts: run.counts, stage: run.stage, done });
  });
}
