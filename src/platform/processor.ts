import { planOf } from "../domain/app-plan.ts";
import { messageOf, SdsError } from "../domain/error.ts";
import type { Shop } from "../domain/shop.ts";
import type { Log } from "../log.ts";
import type { Door } from "../mirror/door.ts";
import type { InboxItem } from "../store/inbox.ts";
import type { Store } from "../store/store.ts";
import type { AdminApi } from "./admin-api.ts";
import { CUSTOMER_BY_ID, INSTALLATION, ORDER_BY_ID } from "./operations.ts";
import { type Intent, readWebhook } from "./payload.ts";
import { PlatformError } from "./platform-error.ts";
import type { Synchronizer } from "./synchronizer.ts";
import { asksPlatform } from "./topics.ts";
import { customerRecord } from "./translate.ts";

const MINUTE = 60_000;
/** After each failed attempt; some 17 hours in all, for the platform may be down for long. Milliseconds. */
const WAITS = [5_000, 15_000, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 60 * MINUTE, 120 * MINUTE, 240 * MINUTE, 480 * MINUTE];
/** Subjects at once, in all and of one shop. */
const CONCURRENCY = 64;
const PER_SHOP = 16;
/** How long a shop whose platform failed is left alone, but for a single try each time; longer each time. Milliseconds. */
const FIRST_REST = 5_000;
const LONGEST_REST = MINUTE;
/** Items that a turn looks at of one shop. */
const LOOK_AT = 500;
/** Milliseconds. */
const PAUSE_AFTER_FAILURE = 900;

/**
 * Processes what is in the inbox. Webhooks about one subject are taken together and subjects one at a time; what fails is tried again, later each time, and
 * stays in the inbox as failed in the end. It works when woken: once a second, when something was received, and when something ended.
 */
export class InboxProcessor {
  private readonly store: Store;
  private readonly parts: { api: AdminApi; synchronizer: Synchronizer; door: Door };
  private readonly now: () => number;
  private readonly log: Log;
  /** Subjects under way, with their shops. */
  private readonly underWay = new Map<string, { shopId: number; done: Promise<void> }>();
  /** Shops whose platform failed lately: when it is tried again, and how long the rest was. */
  private readonly resting = new Map<number, { until: number; rest: number }>();
  private turning: Promise<void> | undefined;
  private wanted = false;
  private stopping = false;
  /** On the clock of performance.now(). */
  private pauseUntil = 0;

  constructor(store: Store, parts: { api: AdminApi; synchronizer: Synchronizer; door: Door }, now: () => number, log: Log) {
    this.store = store;
    this.parts = parts;
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
      await this.turn().catch((thrown: unknown) => {
        this.pauseUntil = performance.now() + PAUSE_AFTER_FAILURE;
        this.log.error("cannot look into the inbox; nothing is lost, the next turn tries again", { error: messageOf(thrown) });
      });
    }
    this.turning = undefined;
  }

  private async turn(): Promise<void> {
    const now = this.now();
    for (const shopId of await this.store.inbox.dueShops(now)) {
      if (this.stopping || this.underWay.size >= CONCURRENCY) return;
      const free = PER_SHOP - [...this.underWay.values()].filter((each) => each.shopId === shopId).length;
      if (free <= 0) continue;
      const bySubject = Map.groupBy(await this.store.inbox.due(shopId, now, LOOK_AT), ({ subject }) => `${shopId} ${subject}`);
      let places = Math.min(free, CONCURRENCY - this.underWay.size);
      for (const [lane, items] of bySubject) {
        if (places === 0) break;
        if (this.underWay.has(lane) || !this.mayStart(shopId, items, now)) continue;
        this.launch(lane, shopId, items);
        places -= 1;
      }
    }
  }

  /** A platform that is down must not take all places, so that of its shop one at a time finds out whether it is back; what needs no platform goes on. */
  private mayStart(shopId: number, items: InboxItem[], now: number): boolean {
    const resting = this.resting.get(shopId);
    if (resting === undefined || !items.some(({ topic }) => asksPlatform(topic))) return true;
    if (now < resting.until) return false;
    resting.until = Number.POSITIVE_INFINITY;
    return true;
  }

  private rest(shopId: number): void {
    const rest = Math.min((this.resting.get(shopId)?.rest ?? FIRST_REST / 2) * 2, LONGEST_REST);
    this.resting.set(shopId, { until: this.now() + rest, rest });
  }

  private launch(lane: string, shopId: number, items: InboxItem[]): void {
    const done = this.process(shopId, items)
      .catch((thrown: unknown) => this.log.error("cannot end what is in the inbox; the next turn tries again", { error: messageOf(thrown) }))
      .finally(() => {
        this.underWay.delete(lane);
        this.wake();
      });
    this.underWay.set(lane, { shopId, done });
  }

  /** All webhooks about one subject that wait, the oldest first. */
  private async process(shopId: number, items: InboxItem[]): Promise<void> {
    const shop = await this.store.shops.byId(shopId);
    if (shop === undefined) return;
    try {
      await this.carryOut(shop, items);
      if (items.some(({ topic }) => asksPlatform(topic))) this.resting.delete(shopId);
    } catch (thrown) {
      // Cut off, and not its fault: it is taken up where it stands.
      if (this.stopping) return;
      if (thrown instanceof PlatformError && thrown.reason !== "refused") this.rest(shopId);
      else if (items.some(({ topic }) => asksPlatform(topic))) this.resting.delete(shopId);
      const attempts = Math.min(...items.map((item) => item.attempts)) + 1;
      const wait = WAITS[attempts - 1];
      await this.store.inbox.postpone(items, messageOf(thrown), wait === undefined ? null : this.now() + wait);
      const fields = { shop: shop.domain, subject: items[0]?.subject, attempts, error: messageOf(thrown) };
      if (wait === undefined) this.log.error("a platform webhook could not be processed; it stays in the inbox as failed", fields);
      else this.log.warn("a platform webhook could not be processed and is tried again", { ...fields, wait });
    }
  }

  private async carryOut(shop: Shop, items: InboxItem[]): Promise<void> {
    const intents = items.map(({ topic, body, triggeredAt }) => ({ intent: readWebhook({ topic, text: body, triggeredAt }), topic, triggeredAt }));
    const settles = items.map(({ number }) => number);
    const records = intents.flatMap(({ intent }) => (intent.do === "apply" ? [intent.record] : []));
    if (records.length === items.length) {
      const applied = await this.parts.door.submit({ shop, records, settles });
      if ("refused" in applied) throw new SdsError("bad_record", applied.refused.reason);
      return;
    }
    if (records.length > 0) await this.parts.door.submit({ shop, records });
    const others = new Map(intents.filter(({ intent }) => intent.do !== "apply").map((each) => [JSON.stringify(each.intent), each]));
    for (const { intent, topic, triggeredAt } of others.values()) await this.carryOutOne(shop, intent, topic, triggeredAt);
    await this.store.inbox.settle(items);
  }

  private async carryOutOne(shop: Shop, intent: Intent, topic: string, triggeredAt: number): Promise<void> {
    const { api, synchronizer, door } = this.parts;
    const fields = { shop: shop.domain, topic };
    const connected = (await this.store.connections.find(shop.id)) !== undefined;
    switch (intent.do) {
      case "read_contract":
      case "read_order":
      case "read_customer":
        // The first sync after it is connected reads everything anyway.
        if (!connected) return this.log.info("a platform webhook was not used, for the shop is not connected", fields);
        if (intent.do === "read_contract") await synchronizer.refresh(shop, intent.contract, []);
        if (intent.do === "read_order") await this.readOrder(shop, intent.order);
        if (intent.do === "read_customer") {
          const { customer } = await api.ask(shop, CUSTOMER_BY_ID, { id: intent.customer });
          if (customer !== null) await door.submit({ shop, records: [customerRecord(customer)] });
        }
        return;
      case "read_plan":
        return this.readPlan(shop, intent, connected, fields);
      case "set_currency":
        await this.store.shops.set(shop.domain, { currency: intent.currency });
        return;
      case "disconnect":
        // One that comes late is from before the shop installed the app again.
        if (await this.store.connections.disconnect(shop.id, triggeredAt)) this.log.warn("the shop uninstalled the app: it is not connected any more", fields);
        return;
      case "remove_shop":
        if (intent.domain !== null && intent.domain !== shop.domain) return this.log.warn("a shop/redact names another shop than its header", fields);
        await this.store.shops.remove(shop.domain);
        return this.log.info("the shop was removed as the platform asked", fields);
      case "note_data_request":
        // Somebody has to answer it, so it is not lost to a quiet log.
        return this.log.warn("a customer's data was requested: `sds customer export` prints it", { ...fields, customer: intent.customer });
      case "apply":
        await door.submit({ shop, records: [intent.record] });
        return;
      case "ignore":
        return this.log.info("a platform webhook was not used", { ...fields, reason: intent.reason });
    }
  }

  private async readOrder(shop: Shop, gid: string): Promise<void> {
    const { api, synchronizer } = this.parts;
    const { order } = await api.ask(shop, ORDER_BY_ID, { id: gid });
    // Most orders of a shop are of no contract.
    const contracts = order === null ? new Set<string>() : await synchronizer.contractsOf(shop, order);
    for (const contract of contracts) await synchronizer.refresh(shop, contract, [gid]);
  }

  private async readPlan(shop: Shop, { name, status }: { name: string; status: string }, connected: boolean, fields: Record<string, string>): Promise<void> {
    const installation = connected ? (await this.parts.api.ask(shop, INSTALLATION, {})).currentAppInstallation : undefined;
    const plan = planOf(installation?.activeSubscriptions ?? [{ name, status }], true);
    if (plan === undefined)
      return this.log.warn("the shop subscribed to a plan that sds does not know; its access stays", { ...fields, plan: name.slice(0, 100) });
    if (await this.store.shops.followPlan(shop.id, plan)) this.log.info("the shop's plan changed", { ...fields, plan });
  }
}
