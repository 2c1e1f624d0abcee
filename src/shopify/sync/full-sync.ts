import type { Shop } from "../../domain/shop.ts";
import { NO_COUNTS, type SyncCounts, type SyncRun } from "../../domain/sync.ts";
import type { InboxStore } from "../../store/inbox.ts";
import type { SyncStore } from "../../store/syncs.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { ALL_CONTRACTS, type ContractNode, NEWEST_CONTRACT } from "../api/operations/contracts.ts";
import { ALL_CUSTOMERS, CUSTOMERS_COUNT } from "../api/operations/customers.ts";
import type { EventScope } from "../contracts/mirror.ts";
import type { Loader } from "./loader.ts";
import { readPages } from "./pages.ts";
import { addCounts, type OnProgress } from "./progress.ts";

interface Dependencies {
  client: GraphqlClient;
  loader: Loader;
  syncs: SyncStore;
  inbox: Pick<InboxStore, "waitingSubjects">;
  now: () => number;
}

/** A run, and what saves its progress. */
interface SavedRun {
  run: SyncRun;
  save(change: Partial<SyncRun>): Promise<void>;
}

/**
 * Loads everything that the platform has of a shop. A run that was interrupted continues at its last page.
 * @throws PlatformError; then the next run continues
 */
export async function runFullSync(
  dependencies: Dependencies,
  shop: Shop,
  options: { events: boolean },
  onProgress: OnProgress,
): Promise<SyncCounts> {
  const { syncs, now } = dependencies;
  const begun = await syncs.unfinished(shop.id, "full");
  const run: SyncRun = {
    ...(begun ?? { startedAt: now(), stage: "customers", cursor: null, counts: NO_COUNTS }),
    events: options.events,
  };
  const saved: SavedRun = {
    run,
    async save(change) {
      Object.assign(run, change);
      await syncs.save(shop.id, "full", run);
    },
  };
  await saved.save({});
  if (run.stage === "customers") await loadCustomers(dependencies, shop, saved, onProgress);
  await loadContracts(dependencies, shop, saved, onProgress);
  await syncs.complete(shop.id, "full", run.startedAt, run.counts.changed, now());
  return run.counts;
}

async function loadCustomers(
  { client, loader }: Dependencies,
  shop: Shop,
  { run, save }: SavedRun,
  onProgress: OnProgress,
): Promise<void> {
  const total = (await client.query(shop, CUSTOMERS_COUNT, {})).customersCount?.count;
  const pages = readPages(client, shop, ALL_CUSTOMERS, "customers", { after: run.cursor });
  for await (const { nodes, endCursor } of pages) {
    await save({ cursor: endCursor, counts: addCounts(run.counts, await loader.loadCustomers(shop, nodes)) });
    const done = total ? run.counts.customers / total : undefined;
    onProgress({ counts: run.counts, stage: run.stage, done });
  }
  await save({ stage: "subscriptions", cursor: null });
}

async function loadContracts(
  { client, loader, inbox }: Dependencies,
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
  const pages = readPages(client, shop, ALL_CONTRACTS, "subscriptionContracts", { after: run.cursor });
  for await (const { nodes, endCursor } of pages) {
    await save({ cursor: endCursor, counts: addCounts(run.counts, await loader.loadContracts(shop, nodes, eventsOf)) });
    oldestMs ??= Date.parse(nodes[0]?.createdAt ?? "");
    const lastMs = Date.parse(nodes.at(-1)?.createdAt ?? "");
    const done = newestAt === undefined ? undefined : (lastMs - oldestMs) / (Date.parse(newestAt) - oldestMs);
    onProgress({ counts: run.counts, stage: run.stage, done });
  }
}
