import type { ConnectionStore } from "../../store/port/connections.ts";
import type { SyncStore } from "../../store/port/syncs.ts";
import { CLOCK_SLACK_MS } from "../contracts/refresher.ts";
import type { InstallationReader } from "../install/installation.ts";
import { isLoading, loadExclusively } from "./exclusive-load.ts";
import { createShopRuns, type ShopRunServices, type ShopRuns } from "./shop-runs.ts";
import type { Synchronizer } from "./synchronizer.ts";

interface Dependencies extends ShopRunServices {
  connections: Pick<ConnectionStore, "find">;
  syncs: SyncStore;
  synchronizer: Pick<Synchronizer, "load">;
  installations: Pick<InstallationReader, "read">;
  now: () => number;
}

/** Maximum number of shops that load at once. A load mostly waits for the platform, and needs about 50 MB. */
const MAX_CONCURRENT_SHOPS = 4;
const RETRY_WAIT_MS = 60_000;
/** The wait while the platform refuses the shop's connection. A new connection ends the wait. */
const ACTION_WAIT_MS = 3_600_000;
/**
 * Maximum age of changes that queue events. A load queues events for contracts that changed since the shop was
 * connected, because their webhooks may be lost. Some shops were connected years ago, so a limit is needed.
 */
const MAX_LIVE_MS = 24 * 3_600_000;

/**
 * Loads each connected shop that was never loaded completely. The database says which shops these are, and how far
 * their loads are. So a load that was interrupted by a kill continues at the next start, or on another node.
 */
export function createFirstLoader(dependencies: Dependencies): ShopRuns {
  const { shops, connections, syncs, installations, now, log } = dependencies;
  return createShopRuns(dependencies, {
    list: () => syncs.unloaded(),
    async isDue({ shopId }) {
      // The shop's load may have ended since the list was read.
      if ((await syncs.lastComplete(shopId, "full")) !== undefined) return false;
      return !isLoading(await syncs.loadState(shopId, now()));
    },
    async run({ id }) {
      const connected = await shops.byId(id);
      if (connected === undefined) return;
      // Reads the currency, the plan and the scopes, because a shop may be connected without them.
      await installations.read(connected);
      const shop = (await shops.byId(id)) ?? connected;
      const connection = await connections.find(id);
      const connectedAt = (connection?.connectedAt ?? 0) - CLOCK_SLACK_MS;
      // If the shop was reconciled before, this is its load after an uninstallation. Events since the last
      // reconciliation may be missing.
      const reconciled = (await syncs.lastComplete(id, "changes"))?.startedAt ?? Number.POSITIVE_INFINITY;
      const liveSince = Math.min(Math.max(connectedAt, now() - MAX_LIVE_MS), reconciled);
      const counts = await loadExclusively(dependencies, shop, { events: false, liveSince });
      if (counts !== undefined) log.info("loaded the shop from the platform", { shop: shop.domain, ...counts });
    },
    maxConcurrentShops: MAX_CONCURRENT_SHOPS,
    retryWaitMs: RETRY_WAIT_MS,
    actionWaitMs: ACTION_WAIT_MS,
    messages: {
      failed: "cannot load a shop from the platform; the next try continues",
      notFound: "cannot find the shops to load from the platform",
    },
  });
}
