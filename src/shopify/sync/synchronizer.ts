import type { SyncCounts } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import type { ContractRefresher } from "../contracts/refresher.ts";
import type { InstallationReader } from "../install/installation.ts";
import { type LoadOptions, type LoadServices, runFullSync } from "./full-sync.ts";
import type { OnProgress } from "./progress.ts";
import { reconcile } from "./reconcile.ts";

/** Loads all data of a shop, or reconciles the data that changed. */
export interface Synchronizer {
  /**
   * Loads all data. If `events` is false, events are queued only for contracts that changed since `liveSince`, or that
   * have a webhook in the inbox.
   * @throws PlatformError; then the next run continues
   */
  load(shop: Shop, options: LoadOptions, onProgress?: OnProgress): Promise<SyncCounts>;
  /** Brings changes since a time, or since the last run, into the mirror. @throws PlatformError; SdsError `conflict` */
  reconcile(shop: Shop, since?: number, onProgress?: OnProgress): Promise<SyncCounts>;
}

/** The source of a load or a reconciliation. The two differ in priority, and only a load takes orders from a stage. */
interface SyncSource {
  client: GraphqlClient;
  contracts: ContractRefresher;
}

interface Dependencies extends Omit<LoadServices, keyof SyncSource | "skipped"> {
  forLoads: SyncSource;
  forReconciling: SyncSource;
  installations: Pick<InstallationReader, "read">;
}

const ignoreProgress: OnProgress = () => {};

export function createSynchronizer({ forLoads, forReconciling, ...services }: Dependencies): Synchronizer {
  return {
    load: (shop, options, onProgress = ignoreProgress) =>
      runFullSync({ ...services, ...forLoads, skipped: new Set() }, shop, options, onProgress),
    async reconcile(shop, since, onProgress = ignoreProgress) {
      // The plan is read in each run, because webhooks about the app can be lost. The platform sends no webhook if it
      // manages a plan's prices.
      await services.installations.read(shop);
      return reconcile({ ...services, ...forReconciling, skipped: new Set() }, shop, since, onProgress);
    },
  };
}
