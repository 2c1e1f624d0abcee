import type { ConnectedShop } from "../../store/port/connections.ts";
import type { SyncStore } from "../../store/port/syncs.ts";
import { coveredUntil } from "./reconcile.ts";
import { createShopRuns, type ShopRunServices, type ShopRuns } from "./shop-runs.ts";
import type { Synchronizer } from "./synchronizer.ts";

interface Dependencies extends ShopRunServices {
  syncs: Pick<SyncStore, "lastComplete" | "unreconciled">;
  synchronizer: Pick<Synchronizer, "reconcile">;
  now: () => number;
}

/** Interval between the starts of two runs of a shop. */
const INTERVAL_MS = 3_600_000;
/** The wait after a failed run. While the platform refuses the shop's connection, the wait is the interval. */
const RETRY_WAIT_MS = 5 * 60_000;
/** A run takes about a second, mostly waiting for the platform. So 32 at a time reconcile 115,000 shops in an hour. */
const MAX_CONCURRENT_SHOPS = 32;

/**
 * Reconciles connected shops every hour, the shop that has waited longest first. The mirror can miss changes, because
 * platform webhooks may be lost.
 */
export function createReconciler(dependencies: Dependencies): ShopRuns {
  const { syncs, synchronizer, now, log } = dependencies;
  return createShopRuns(dependencies, {
    list: () => syncs.unreconciled(now() - INTERVAL_MS, now()),
    isDue: (shop) => isDue(dependencies, shop),
    async run(shop) {
      const { changed, events, skipped } = await synchronizer.reconcile(shop);
      log.info("reconciled the mirror with the platform", { shop: shop.domain, changed, events, skipped });
    },
    maxConcurrentShops: MAX_CONCURRENT_SHOPS,
    retryWaitMs: RETRY_WAIT_MS,
    actionWaitMs: INTERVAL_MS,
    messages: {
      failed: "cannot reconcile a mirror with the platform",
      notFound: "cannot find the mirrors to reconcile with the platform",
    },
  });
}

/** Whether a run of the shop is due. A shop without a complete load is never due. */
async function isDue({ syncs, now }: Dependencies, { shopId, connectedAt }: ConnectedShop): Promise<boolean> {
  if ((await syncs.lastComplete(shopId, "full")) === undefined) return false;
  const lastAt = (await coveredUntil(syncs, shopId, now())) ?? 0;
  // While the shop was not connected, its platform webhooks were dropped.
  const wasConnectedSince = connectedAt <= now() && connectedAt > lastAt;
  return wasConnectedSince || now() - lastAt >= INTERVAL_MS;
}
