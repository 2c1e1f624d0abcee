import type { Shop } from "../../domain/shop.ts";
import type { SyncCounts } from "../../domain/sync.ts";
import type { Log } from "../../log.ts";
import type { InboxStore } from "../../store/inbox.ts";
import type { SyncStore } from "../../store/syncs.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import type { ContractMirror } from "../contracts/mirror.ts";
import type { InstallationReader } from "../install/installation.ts";
import { runFullSync } from "./full-sync.ts";
import { createLoader } from "./loader.ts";
import type { OnProgress } from "./progress.ts";
import { reconcile } from "./reconcile.ts";

/** Loads all data of a shop, or reconciles the part of it that changed. */
export interface Synchronizer {
  /**
   * Loads everything that the platform has of a shop. A run that was interrupted continues at its last page. Without
   * `events` it queues nothing, except for changes during the run and for contracts with a platform webhook in the
   * inbox.
   * @throws PlatformError; then the next run continues
   */
  load(shop: Shop, options: { events: boolean }, onProgress?: OnProgress): Promise<SyncCounts>;
  /**
   * Brings what changed at the platform since a time into the mirror, and queues the events that were missed.
   * @param since epoch milliseconds; without it, since the last complete run
   * @throws PlatformError; SdsError `conflict` for a shop that was never loaded completely
   */
  reconcile(shop: Shop, since?: number, onProgress?: OnProgress): Promise<SyncCounts>;
}

interface Dependencies {
  client: GraphqlClient;
  contracts: ContractMirror;
  installations: Pick<InstallationReader, "read">;
  syncs: SyncStore;
  inbox: Pick<InboxStore, "receive" | "waitingSubjects">;
  now: () => number;
  log: Log;
}

export function createSynchronizer(dependencies: Dependencies): Synchronizer {
  const { client, contracts, installations, syncs, inbox, now, log } = dependencies;
  const loader = createLoader({ contracts, inbox, now, log });
  const ignoreProgress = () => {};
  return {
    load: (shop, options, onProgress = ignoreProgress) =>
      runFullSync({ client, loader, syncs, inbox, now }, shop, options, onProgress),
    async reconcile(shop, since, onProgress = ignoreProgress) {
      // Its platform webhooks can be lost too, and plans whose prices the platform keeps have none.
      await installations.read(shop);
      return reconcile({ client, contracts, loader, syncs, now }, shop, since, onProgress);
    },
  };
}
