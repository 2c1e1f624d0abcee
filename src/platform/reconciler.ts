import { messageOf } from "../domain/error.ts";
import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";
import type { Synchronizer } from "./synchronizer.ts";

/** From the beginning of one run to the beginning of the next. Milliseconds. */
const EVERY = 3_600_000;
/** After a run that failed. */
const AGAIN_AFTER = 5 * 60_000;

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
  private stopping = false;
  private running: Promise<void> = Promise.resolve();

  constructor(store: Store, synchronizer: Synchronizer, now: () => number, log: Log) {
    this.store = store;
    this.synchronizer = synchronizer;
    this.now = now;
    this.log = log;
  }

  /** Runs what is due, one shop after another; a failure of one leaves the others alone. */
  runOnce(): Promise<void> {
    this.running = this.running.then(() => this.runDue());
    return this.running;
  }

  /** Takes up no further shop and waits for the one that runs. May be called twice. */
  async stop(): Promise<void> {
    this.stopping = true;
    await this.running;
  }

  private async runDue(): Promise<void> {
    for (const shopId of await this.store.connections.list()) {
      if (this.stopping) return;
      if (await this.isDue(shopId)) await this.run(shopId);
    }
  }

  private async isDue(shopId: number): Promise<boolean> {
    const [full, changes] = await Promise.all([this.store.syncs.lastComplete(shopId, "full"), this.store.syncs.lastComplete(shopId, "changes")]);
    if (full === undefined) return false;
    const last = Math.max(full.startedAt, changes?.startedAt ?? 0);
    return this.now() - last >= EVERY && this.now() >= (this.notBefore.get(shopId) ?? 0);
  }

  private async run(shopId: number): Promise<void> {
    const shop = await this.store.shops.byId(shopId);
    if (shop === undefined) return;
    try {
      const { changed, events } = await this.synchronizer.changes(shop, undefined);
      this.log.info("compared the mirror with the platform", { shop: shop.domain, changed, events });
    } catch (thrown) {
      this.notBefore.set(shopId, this.now() + AGAIN_AFTER);
      this.log.warn("cannot compare the mirror with the platform; it is tried again in five minutes", { shop: shop.domain, error: messageOf(thrown) });
    }
  }
}
