import type { SyncCounts } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { InboxStore } from "../../store/port/inbox.ts";
import type { OrderStageStore } from "../../store/port/order-stages.ts";
import type { SyncStore } from "../../store/port/syncs.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import type { FileDependencies } from "../bulk/file-bytes.ts";
import { createBulkOperations } from "../bulk/operations.ts";
import { createResultReader } from "../bulk/result-reader.ts";
import type { ContractMirror } from "../contracts/mirror.ts";
import type { InstallationReader } from "../install/installation.ts";
import { createBulkParts } from "./bulk-parts.ts";
import { type LoadOptions, runFullSync } from "./full-sync.ts";
import { createLoader } from "./loader.ts";
import type { OnProgress } from "./progress.ts";
import { reconcile } from "./reconcile.ts";

/** Loads all data of a shop, or reconciles the part of it that changed. */
export interface Synchronizer {
  /**
   * Loads everything that the platform has of a shop. A run that was interrupted continues where it stopped. Without
   * `events` it queues nothing, except for changes during the run and for contracts with a platform webhook in the
   * inbox.
   * @throws PlatformError; then the next run continues
   */
  load(shop: Shop, options: LoadOptions, onProgress?: OnProgress): Promise<SyncCounts>;
  /**
   * Brings what changed at the platform since a time into the mirror, and queues the events that were missed.
   * @param since epoch milliseconds; without it, since the last complete run
   * @throws PlatformError; SdsError `conflict` for a shop that was never loaded completely
   */
  reconcile(shop: Shop, since?: number, onProgress?: OnProgress): Promise<SyncCounts>;
}

interface Dependencies {
  loadClient: GraphqlClient;
  reconcileClient: GraphqlClient;
  contracts: ContractMirror;
  /** The same, but orders that a load has staged are taken from there. */
  loadedContracts: ContractMirror;
  /** How the files of bulk operations are read. */
  files: FileDependencies;
  orderStages: OrderStageStore;
  installations: Pick<InstallationReader, "read">;
  syncs: SyncStore;
  inbox: Pick<InboxStore, "receive" | "waitingSubjects">;
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
}

export function createSynchronizer(dependencies: Dependencies): Synchronizer {
  const { loadClient, reconcileClient, contracts, loadedContracts, files, orderStages } = dependencies;
  const { installations, syncs, inbox, now, clock, log } = dependencies;
  const loader = createLoader({ contracts, inbox, now, log });
  const firstLoader = createLoader({ contracts: loadedContracts, inbox, now, log });
  const operations = createBulkOperations({ client: loadClient, sleep: files.sleep, clock, log });
  const readResult = createResultReader(operations, files);
  const bulkParts = createBulkParts({
    client: loadClient,
    operations,
    readResult,
    loader: firstLoader,
    orderStages,
    log,
  });
  const ignoreProgress = () => {};
  return {
    load: (shop, options, onProgress = ignoreProgress) =>
      runFullSync(
        { client: loadClient, loader: firstLoader, bulkParts, syncs, orderStages, inbox, now },
        shop,
        options,
        onProgress,
      ),
    async reconcile(shop, since, onProgress = ignoreProgress) {
      // Its platform webhooks can be lost too, and plans whose prices the platform keeps have none.
      await installations.read(shop);
      return reconcile({ client: reconcileClient, loader, syncs, now }, shop, since, onProgress);
    },
  };
}
