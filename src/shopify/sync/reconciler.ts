import { messageOf } from "../../domain/error.ts";
import type { Log } from "../../log.ts";
import type { Store } from "../../store/store.ts";
import type { Synchronizer } from "./synchronizer.ts";

/** From the beginning of one run to the beginning of the next. Milliseconds. */
const EVERY = 3_600_000;
/** After a run that failed. */
const AGAIN_AFTER = 5 * 60_000;
/** Shops at once: one whose platform is slow, or has much to tell, must not hold up the others. */
const AT_ONCE = 8;

/**
 * Repairs, every hour, what webhooks missed: they come late, twice, or never. A shop that was never loaded whole is left alone, for there is nothing to
 * repair.
 */
export class Reconciler {
  private readonly store: Store;
  private readonly synchronizer: Synchronizer;
  private readonly now: () => number;
  private readonly log: Log;
  private readonly notBefore = new Map<number, number>();
  private readonly underWay = new Map<number, Promise<void>>();
  private stopping = false;

  constructor(store: Store, synchronizer: Synchronizer, now: () => number, log: Log) {
    this.store = store;
    this.synchronizer = synchronizer;
    this.now = now;
    this.log = log;
  }

  /** Begins the runs that are due, as far as there is room. Never rejects. */
  async begin(): Promise<void> {
    try {
      for (const shopId of await this.store.connections.list()) {
        if (this.stopping || this.underWay.size >= AT_ONCE) return;
        if (this.underWay.has(shopId) || !(await this.isDue(shopId))) continue;
        const run = this.run(shopId).finally(() => this.underWay.delete(shopId));
        this.underWay.set(shopId, run);
      }
    } catch (thrown) {
      this.log.error("cannot see which mirrors are to be compared with the platform", { error: messageOf(thrown) });
    }
  }

  /** Begins what is due and waits for all that runs. */
  async runOnce(): Promise<void> {
    await this.begin();
    await Promise.all(this.underWay.values());
  }

  /** Begins nothing more and waits for what runs. May be called twice. */
  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.all(this.underWay.values());
  }

  private async isDue(shopId: number): Promise<boolean> {
    const [full, changes] = await Promise.all([this.store.syncs.lastComplete(shopId, "full"), this.store.syncs.lastComplete(shopId, "changes")]);
    if (full === undefined) return false;
    const last = Math.max(full.startedAt ?? 0, changes?.startedAt ?? 0);
    // One that lies ahead is of a clock that was.
    const isOld = this.now() - last >= EVERY || last > this.now();
    return isOld && this.now() >= (this.notBefore.get(shopId) ?? 0);
  }

  private async run(shopId: number): Promise<void> {
    try {
      const shop = await this.store.shops.byId(shopId);
      if (shop === undefined) return;
      const { changed, events, skipped } = await this.synchronizer.changes(shop, undefined);
      this.log.info("compared the mirror with the platform", { shop: shop.domain, changed, events, skipped });
    } catch (thrown) {
      if (this.stopping) return;
      this.notBefore.set(shopId, this.now() + AGAIN_AFTER);
      this.log.warn("cannot compare a mirror with the platform; it is tried again in five minutes", { shopId, error: messageOf(thrown) });
    }
  }
}
