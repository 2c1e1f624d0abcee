import { messageOf } from "../../domain/error.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../log.ts";
import type { InboxItem, InboxQueue } from "../../store/inbox.ts";
import type { Store } from "../../store/store.ts";
import { PlatformError } from "../api/platform-error.ts";
import type { WebhookHandler } from "./webhook-handler.ts";

const MINUTE = 60_000;
/** After each failed attempt; some 17 hours in all, for the platform may be down for long. Milliseconds. */
const WAITS = [5_000, 15_000, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 60 * MINUTE, 120 * MINUTE, 240 * MINUTE, 480 * MINUTE];
/** Subjects at once for which the platform is asked: in all, of one shop, and of one whose platform lately took its time. */
const ASKING = 128;
const ASKING_PER_SHOP = 8;
const ASKING_PER_SLOW_SHOP = 1;
/** Subjects at once that need no platform: they hold nobody up. */
const QUICK = 64;
/** An answer that takes longer makes a platform a slow one. Milliseconds. */
const SLOW = 5_000;
/** How long a shop whose platform failed is left alone, but for a single try each time; longer each time. Milliseconds. */
const FIRST_REST = 5_000;
const LONGEST_REST = MINUTE;
/** Items of a queue that are looked at once; more, up to the most, where all of those are about subjects that are under way. */
const LOOK_AT = 500;
const LOOK_AT_MOST = 100_000;
/** Milliseconds. */
const PAUSE_AFTER_FAILURE = 900;

/**
 * Processes what is in the inbox. Webhooks about one subject are taken together and subjects one at a time; what fails is tried again, later each time, and
 * stays in the inbox as failed in the end. Shops have places in turn, and those whose platform is slow or down have few, so that they hold up no others. It works when
 * woken: once a second, when something was received, and when something ended.
 */
export class InboxProcessor {
  private readonly store: Store;
  private readonly handler: WebhookHandler;
  private readonly now: () => number;
  private readonly log: Log;
  /** Subjects under way, with their queues. */
  private readonly underWay = new Map<string, { queue: InboxQueue; done: Promise<void> }>();
  /** What was seen to be due and has no place yet: numbers by subject by queue. Looking for each place that gets free would cost more than the work. */
  private readonly ahead = new Map<string, Map<string, number[]>>();
  /** Shops whose platform failed lately: when it is tried again, and how long the rest was. */
  private readonly resting = new Map<number, { until: number; rest: number }>();
  private readonly slow = new Set<number>();
  /** The shop that was given a place last: the next round begins behind it. */
  private lastServed = 0;
  private turning: Promise<void> | undefined;
  private wanted = false;
  private stopping = false;
  /** On the clock of performance.now(). */
  private pauseUntil = 0;

  constructor(store: Store, handler: WebhookHandler, now: () => number, log: Log) {
    this.store = store;
    this.handler = handler;
    this.now = now;
    this.log = log;
  }

  /** Whether anything is under way or about to be. */
  get working(): boolean {
    return this.turning !== undefined || this.underWay.size > 0;
  }

  /** Has a turn made soon; many calls at once come to one. */
  wake(): void {
    if (this.stopping || performance.now() < this.pauseUntil) return;
    this.wanted = true;
    this.turning ??= this.run();
  }

  /** Takes up nothing more and waits for what is under way. May be called twice. */
  async stop(): Promise<void> {
    this.stopping = true;
    await this.turning;
    await Promise.all([...this.underWay.values()].map(({ done }) => done));
  }

  private async run(): Promise<void> {
    while (this.wanted) {
      await new Promise((resolve) => setImmediate(resolve));
      this.wanted = false;
      await this.turn().catch((thrown: unknown) => this.pause("cannot look into the inbox", thrown));
    }
    this.turning = undefined;
  }

  /** Nothing is lost; but a full disk, for one, is not asked again at once. */
  private pause(what: string, thrown: unknown): void {
    this.pauseUntil = performance.now() + PAUSE_AFTER_FAILURE;
    this.log.error(`${what}; nothing is lost, it is tried again`, { error: messageOf(thrown) });
  }

  /** One place at a time to each queue with something due, beginning behind the shop served last. */
  private async turn(): Promise<void> {
    const due = await this.store.inbox.dueQueues(this.now());
    const behind = due.findIndex(({ shopId }) => shopId > this.lastServed);
    let round = behind <= 0 ? due : [...due.slice(behind), ...due.slice(0, behind)];
    while (round.length > 0 && !this.stopping) {
      const served: InboxQueue[] = [];
      for (const queue of round) {
        if (!this.hasPlace(queue) || !(await this.launchNext(queue))) continue;
        this.lastServed = queue.shopId;
        served.push(queue);
      }
      round = served;
    }
  }

  private hasPlace({ shopId, needsPlatform }: InboxQueue): boolean {
    const taken = [...this.underWay.values()].filter(({ queue }) => queue.needsPlatform === needsPlatform);
    if (!needsPlatform) return taken.length < QUICK;
    const resting = this.resting.get(shopId);
    if (resting !== undefined && this.now() < resting.until) return false;
    const most = resting !== undefined || this.slow.has(shopId) ? ASKING_PER_SLOW_SHOP : ASKING_PER_SHOP;
    return taken.length < ASKING && taken.filter(({ queue }) => queue.shopId === shopId).length < most;
  }

  /** @returns whether there was anything that is not under way */
  private async launchNext(queue: InboxQueue): Promise<boolean> {
    const ahead = await this.aheadOf(queue);
    const next = [...ahead].find(([subject]) => !this.underWay.has(`${queue.shopId} ${subject}`));
    if (next === undefined) return false;
    const [subject, numbers] = next;
    ahead.delete(subject);
    this.launch(queue, subject, numbers);
    return true;
  }

  private async aheadOf(queue: InboxQueue): Promise<Map<string, number[]>> {
    const name = `${queue.shopId} ${queue.needsPlatform}`;
    const known = this.ahead.get(name);
    if (known !== undefined && known.size > 0) return known;
    const now = this.now();
    let seen = new Map<string, number[]>();
    for (let limit = LOOK_AT, whole = false; seen.size === 0 && !whole && limit <= LOOK_AT_MOST; limit *= 10) {
      const due = await this.store.inbox.due(queue, now, limit);
      whole = due.length < limit;
      const startable = due.filter(({ subject }) => !this.underWay.has(`${queue.shopId} ${subject}`));
      seen = new Map([...Map.groupBy(startable, ({ subject }) => subject)].map(([subject, items]) => [subject, items.map(({ number }) => number)]));
    }
    if (seen.size === 0) this.ahead.delete(name);
    else this.ahead.set(name, seen);
    return seen;
  }

  private launch(queue: InboxQueue, subject: string, numbers: number[]): void {
    const lane = `${queue.shopId} ${subject}`;
    const done = this.process(queue, numbers)
      .catch((thrown: unknown) => this.pause("cannot end what is in the inbox", thrown))
      .finally(() => {
        this.underWay.delete(lane);
        this.wake();
      });
    this.underWay.set(lane, { queue, done });
  }

  /** All webhooks about one subject that wait, the oldest first. */
  private async process({ shopId, needsPlatform }: InboxQueue, numbers: number[]): Promise<void> {
    const shop = await this.store.shops.byId(shopId);
    // A person may have been redacted in them since they were seen.
    const items = await this.store.inbox.read(shopId, numbers);
    if (shop === undefined || items.length === 0) return;
    const began = performance.now();
    try {
      await this.handler.handle(shop, items);
      if (needsPlatform) this.resting.delete(shopId);
    } catch (thrown) {
      // Cut off, and not its fault: it is taken up where it stands.
      if (this.stopping) return;
      if (thrown instanceof PlatformError && thrown.reason !== "refused") this.rest(shopId);
      await this.postpone(shop, items, thrown);
    } finally {
      if (needsPlatform && performance.now() - began > SLOW) this.slow.add(shopId);
      else if (needsPlatform) this.slow.delete(shopId);
    }
  }

  private rest(shopId: number): void {
    const rest = Math.min((this.resting.get(shopId)?.rest ?? FIRST_REST / 2) * 2, LONGEST_REST);
    this.resting.set(shopId, { until: this.now() + rest, rest });
  }

  private async postpone({ id: shopId, domain }: Shop, items: InboxItem[], thrown: unknown): Promise<void> {
    const attempts = Math.min(...items.map((item) => item.attempts)) + 1;
    const wait = WAITS[attempts - 1];
    await this.store.inbox.postpone(
      shopId,
      items.map(({ number }) => number),
      messageOf(thrown),
      wait === undefined ? null : this.now() + wait,
    );
    const fields = { shop: domain, subject: items[0]?.subject, attempts, error: messageOf(thrown) };
    if (wait === undefined) this.log.error("a platform webhook could not be processed; it stays in the inbox as failed", fields);
    else this.log.warn("a platform webhook could not be processed and is tried again", { ...fields, wait });
  }
}
