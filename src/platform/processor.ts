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
import type { Synchronizer } from "./synchronizer.ts";
import { customerRecord } from "./translate.ts";

const MINUTE = 60_000;
/** After each failed attempt; some 17 hours in all, for the platform may be down for long. Milliseconds. */
const WAITS = [5_000, 15_000, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 60 * MINUTE, 120 * MINUTE, 240 * MINUTE, 480 * MINUTE];
/** Subjects at once, in all and of one shop. */
const CONCURRENCY = 64;
const PER_SHOP = 16;
/** Items of one shop that are looked at once. */
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
  /** What was seen to be due and has no place yet: numbers by subject by shop. Looking for each place that gets free would cost more than the work. */
  private readonly ahead = new Map<number, Map<string, number[]>>();
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
      const ahead = await this.aheadOf(shopId, now);
      for (const [subject, numbers] of [...ahead].slice(0, Math.min(free, CONCURRENCY - this.underWay.size))) {
        ahead.delete(subject);
        this.launch(laneOf(shopId, subject), shopId, numbers);
      }
    }
  }

  /** None of them is about a subject that is under way. */
  private async aheadOf(shopId: number, now: number): Promise<Map<string, number[]>> {
    const known = this.ahead.get(shopId);
    if (known !== undefined && known.size > 0) return known;
    const seen = new Map<string, number[]>();
    for (const { number, subject } of await this.store.inbox.due(shopId, now, LOOK_AT)) {
      if (this.underWay.has(laneOf(shopId, subject))) continue;
      const numbers = seen.get(subject);
      if (numbers === undefined) seen.set(subject, [number]);
      else numbers.push(number);
    }
    this.ahead.set(shopId, seen);
    return seen;
  }

  private launch(lane: string, shopId: number, numbers: number[]): void {
    const done = this.process(shopId, numbers)
      .catch((thrown: unknown) => this.log.error("cannot end what is in the inbox; the next turn tries again", { error: messageOf(thrown) }))
      .finally(() => {
        this.underWay.delete(lane);
        this.wake();
      });
    this.underWay.set(lane, { shopId, done });
  }

  /** All webhooks about one subject that wait, the oldest first. */
  private async process(shopId: number, numbers: number[]): Promise<void> {
    const shop = await this.store.shops.byId(shopId);
    // A person may have been redacted in them since they were seen.
    const items = await this.store.inbox.read(numbers);
    if (shop === undefined || items.length === 0) return;
    try {
      await this.carryOut(shop, items);
    } catch (thrown) {
      // Cut off, and not its fault: it is taken up where it stands.
      if (this.stopping) return;
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
    // What the webhooks bring and their end share a commit where that can be, for each commit waits for the disk.
    if (records.length === items.length) {
      const applied = await this.parts.door.submit({ shop, records, settles });
      if ("refused" in applied) throw new SdsError("bad_record", applied.refused.reason);
      return;
    }
    const others = [...new Map(intents.filter(({ intent }) => intent.do !== "apply").map((each) => [JSON.stringify(each.intent), each])).values()];
    const [first] = others;
    if (first?.intent.do === "read_contract" && others.length === 1 && records.length === 0 && (await this.isConnected(shop))) {
      await this.parts.synchronizer.refresh(shop, first.intent.contract, [], settles);
      return;
    }
    if (records.length > 0) await this.parts.door.submit({ shop, records });
    for (const { intent, topic, triggeredAt } of others) await this.carryOutOne(shop, intent, topic, triggeredAt);
    await this.parts.door.submit({ shop, records: [], settles });
  }

  private async isConnected({ id }: Shop): Promise<boolean> {
    return (await this.store.connections.find(id)) !== undefined;
  }

  private async carryOutOne(shop: Shop, intent: Intent, topic: string, triggeredAt: number): Promise<void> {
    const { api, synchronizer, door } = this.parts;
    const fields = { shop: shop.domain, topic };
    const connected = await this.isConnected(shop);
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

function laneOf(shopId: number, subject: string): string {
  return `${shopId} ${subject}`;
}
