import type { Membership } from "../../cluster/membership.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { ConnectedShop } from "../../store/port/connections.ts";
import type { ShopStore } from "../../store/port/shops.ts";
import { failureFields } from "../../store/port/store-error.ts";
import { needsAction } from "../api/platform-error.ts";

/** Runs long work for connected shops, for a limited number of shops at the same time. */
export interface ShopRuns {
  /** Starts the runs that are due, up to the limit. When a run ends, the next run begins. Never rejects. */
  begin(): Promise<void>;
  /** Starts the runs that are due and waits for all of them. */
  runOnce(): Promise<void>;
  /** Lets the runs under way end, and starts no other runs. May be called twice. */
  stop(): Promise<void>;
}

export interface ShopRunServices {
  shops: Pick<ShopStore, "byId">;
  membership: Pick<Membership, "beginAlways" | "mayBegin">;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
}

interface ShopWork {
  /** Lists shops that may be due, the most urgent first. */
  list(): Promise<ConnectedShop[]>;
  /** Checked before a run begins, because the list may be old by then. */
  isDue(shop: ConnectedShop): Promise<boolean>;
  /** @throws if the run failed. The shop then waits before its next run */
  run(shop: Shop): Promise<void>;
  maxConcurrentShops: number;
  /** The wait after a failed run. */
  retryWaitMs: number;
  /** The wait after a failure that only a person can fix. */
  actionWaitMs: number;
  /** Log messages: `failed` if a run failed, `notFound` if the list of shops could not be read. */
  messages: { failed: string; notFound: string };
}

export function createShopRuns({ shops, membership, clock, log }: ShopRunServices, work: ShopWork): ShopRuns {
  /** For each shop: the connection with which a run failed, and the time of `clock` when the next run may start. */
  const rests = new Map<number, { connectedAt: number; until: number }>();
  const underWay = new Map<number, Promise<void>>();
  /** The shops of the last list whose runs have not begun. */
  let waiting: ConnectedShop[] = [];
  let stopping = false;

  async function run(due: ConnectedShop): Promise<void> {
    const { shopId, connectedAt } = due;
    try {
      const shop = (await work.isDue(due)) ? await shops.byId(shopId) : undefined;
      if (shop !== undefined) await work.run(shop);
      rests.delete(shopId);
    } catch (thrown) {
      // Another node may have taken over the shop. That node then does the work.
      if (stopping || !membership.mayBegin(shopId)) return;
      const waitMs = needsAction(thrown) ? work.actionWaitMs : work.retryWaitMs;
      rests.set(shopId, { connectedAt, until: clock() + waitMs });
      log.warn(work.messages.failed, { shopId, waitMs, ...failureFields(thrown) });
    }
  }

  /** Whether a run failed a short time ago. A shop that was connected again after the failure does not wait. */
  function mustRest({ shopId, connectedAt }: ConnectedShop): boolean {
    const rest = rests.get(shopId);
    return rest !== undefined && rest.connectedAt === connectedAt && clock() < rest.until;
  }

  async function begin(): Promise<void> {
    try {
      waiting = await work.list();
      beginNext();
    } catch (thrown) {
      log.error(work.messages.notFound, failureFields(thrown));
    }
  }

  function beginNext(): void {
    while (!stopping && underWay.size < work.maxConcurrentShops) {
      const shop = waiting.shift();
      if (shop === undefined) return;
      const { shopId } = shop;
      if (underWay.has(shopId) || mustRest(shop) || !membership.mayBegin(shopId)) continue;
      const end = membership.beginAlways(shopId);
      const running = run(shop).finally(() => {
        underWay.delete(shopId);
        end();
        beginNext();
      });
      underWay.set(shopId, running);
    }
  }

  async function settle(): Promise<void> {
    while (underWay.size > 0) await Promise.all(underWay.values());
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
