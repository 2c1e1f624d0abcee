import { RESOURCES, type Resource } from "../../domain/resources.ts";
import type { CountedTo, CountStore } from "../../store/sqlite/counts.ts";

/** Rows that are counted in one go. */
const AT_ONCE = 5_000;
/** How long a view waits for its counts; what takes longer goes on behind it. Milliseconds. */
const WAIT = 20;
/** How long counts that took longer are shown before they are taken again. */
const KEEP = 10 * 60_000;

/** How many rows a shop has of each resource. */
export interface MirrorCount {
  counts: Record<Resource, number>;
  /** Whether all is counted; until then the counts are lower bounds. */
  complete: boolean;
  /** Epoch milliseconds. */
  startedAt: number;
}

/** Counts a shop's rows without holding anybody up: in steps, large shops' behind the page that asked and once in ten minutes at most. */
export class MirrorCounts {
  private readonly store: CountStore;
  private readonly now: () => number;
  private readonly running = new Map<number, MirrorCount>();

  constructor(store: CountStore, now: () => number) {
    this.store = store;
    this.now = now;
  }

  /** @returns counts that go on growing until they are complete */
  async of(shopId: number): Promise<MirrorCount> {
    const known = this.running.get(shopId);
    if (known !== undefined && (!known.complete || this.now() - known.startedAt < KEEP)) return known;
    const count: MirrorCount = { counts: { customers: 0, subscriptions: 0, orders: 0 }, complete: false, startedAt: this.now() };
    this.running.set(shopId, count);
    const done = this.run(shopId, count);
    await Promise.race([done, Bun.sleep(WAIT)]);
    // What is counted this quickly is counted anew for every view.
    if (count.complete) this.running.delete(shopId);
    return count;
  }

  private async run(shopId: number, count: MirrorCount): Promise<void> {
    try {
      for (const resource of RESOURCES) {
        let from: CountedTo | null = null;
        do {
          const { counted, to }: { counted: number; to: CountedTo | null } = await this.store.step(shopId, resource, from, AT_ONCE);
          count.counts[resource] += counted;
          from = to;
          await new Promise((resolve) => setImmediate(resolve));
        } while (from !== null);
      }
      count.complete = true;
    } catch {
      // The database is closed or out of order: the next view begins anew.
      this.running.delete(shopId);
    }
  }
}
