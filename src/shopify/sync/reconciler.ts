import type { Membership } from "../../cluster/membership.ts";
import type { Log } from "../../lib/log.ts";
import type { ConnectionStore } from "../../store/port/connections.ts";
import type { ShopStore } from "../../store/port/shops.ts";
import { failureFields } from "../../store/port/store-error.ts";
import type { SyncStore } from "../../store/port/syncs.ts";
import { needsAction } from "../api/platform-error.ts";
import type { Synchronizer } from "./synchronizer.ts";

/** Reconciles connected shops every hour. The mirror can miss changes, because platform webhooks may be lost. */
export interface Reconciler {
  /** Starts the runs that are due, as many as may run at the same time. Never rejects. */
  begin(): Promise<void>;
  /** Starts the runs that are due and waits for all that are under way. */
  runOnce(): Promise<void>;
  /** Waits for the runs under way, and starts no others. May be called twice. */
  stop(): Promise<void>;
}

interface Dependencies {
  shops: Pick<ShopStore, "byId">;
  connections: Pick<ConnectionStore, "list">;
  syncs: Pick<SyncStore, "lastComplete">;
  synchronizer: Pick<Synchronizer, "reconcile">;
  membership: Pick<Membership, "beginAlways" | "mayBegin">;
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
}

/** The time between the starts of two runs of a shop. */
const INTERVAL_MS = 3_600_000;
/** The wait after a failed run. While the platform refuses the shop's connection, the interval is the wait. */
const RETRY_WAIT_MS = 5 * 60_000;
/** A shop with a slow platform, or with many changes, must not delay all others. */
const MAX_CONCURRENT_SHOPS = 8;

export function createReconciler(dependencies: Dependencies): Reconciler {
  const { shops, connections, synchronizer, membership, clock, log } = dependencies;
  /** By shop: the time of `clock` when the next run may start after a failure. */
  const notBefore = new Map<number, number>();
  const underWay = new Map<number, Promise<void>>();
  let stopping = false;

  async function run(shopId: number): Promise<void> {
    try {
      const shop = await shops.byId(shopId);
      if (shop === undefined) return;
      const { changed, events, skipped } = await synchronizer.reconcile(shop);
      log.info("reconciled the mirror with the platform", { shop: shop.domain, changed, events, skipped });
    } catch (thrown) {
      // Another node may have taken over the shop. That node then reconciles the shop.
      if (stopping || !membership.mayBegin(shopId)) return;
      const waitMs = needsAction(thrown) ? INTERVAL_MS : RETRY_WAIT_MS;
      notBefore.set(shopId, clock() + waitMs);
      log.warn("cannot reconcile a mirror with the platform", { shopId, waitMs, ...failureFields(thrown) });
    }
  }

  async function begin(): Promise<void> {
    try {
      for (const shopId of await connections.list()) {
        if (stopping || underWay.size >= MAX_CONCURRENT_SHOPS) return;
        if (underWay.has(shopId) || clock() < (notBefore.get(shopId) ?? Number.NEGATIVE_INFINITY)) continue;
        if (!membership.mayBegin(shopId) || !(await isDue(dependencies, shopId))) continue;
        const end = membership.beginAlways(shopId);
        const running = run(shopId).finally(() => {
          underWay.delete(shopId);
          end();
        });
        underWay.set(shopId, running);
      }
    } catch (thrown) {
      log.error("cannot find the mirrors to reconcile with the platform", failureFields(thrown));
    }
  }

  async function settle(): Promise<void> {
    await Promise.all(underWay.values());
  }

  return {
    begin,
    async runOnce() {
      await begin();
      await settle();
    },
    async stop() {
      stopping = true;
      await settle();
    },
  };
}

/** Whether a run of the shop is due. A shop without a complete load is never due. */
async function isDue({ syncs, now }: Dependencies, shopId: number): Promise<boolean> {
  const full = await syncs.lastComplete(shopId, "full");
  if (full === undefined) return false;
  const changes = await syncs.lastComplete(shopId, "changes");
  // A future time was noted before the clock was set back, so it is ignored.
  const starts = [full, changes].map((run) => run?.startedAt ?? 0).filter((at) => at <= now());
  return now() - Math.max(0, ...starts) >= INTERVAL_MS;
}
