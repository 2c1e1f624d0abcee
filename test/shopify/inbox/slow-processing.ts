import { soleMember } from "../../../src/cluster/membership.ts";
import { SdsError } from "../../../src/domain/error.ts";
import type { Shop } from "../../../src/domain/shop.ts";
import { createLog } from "../../../src/lib/log.ts";
import { PlatformError } from "../../../src/shopify/api/platform-error.ts";
import { createInboxProcessor } from "../../../src/shopify/inbox/processor.ts";
import type { InboxEntry, InboxItem } from "../../../src/store/port/inbox.ts";
import { START, type TestApp, testApp } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";

export const SECOND = 1_000;
export const MINUTE = 60_000;
export const REFUSED = new SdsError("bad_record", "the record is refused");
export const LOCKED = new PlatformError("unauthorized", "the shop is locked", { status: 423, needsMerchant: true });
export const DOWN = new PlatformError("unavailable", "the platform answered HTTP 503");

/** A call of the handler. The test ends the call. */
export interface Call {
  domain: string;
  subject: string;
  items: readonly InboxItem[];
  /** Removes the items from the inbox, as the real handler does. */
  succeed(): Promise<void>;
  fail(error: Error): void;
}

/** A handler whose calls wait until the test ends them. */
function slowHandler({ app, clock }: TestApp) {
  let calls: Call[] = [];
  const unended = new Set<Call>();

  async function handle(shop: Shop, items: readonly InboxItem[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const inboxNumbers = items.map(({ number }) => number);
    const call: Call = {
      domain: shop.domain.replace(".myshopify.com", ""),
      subject: items[0]?.subject ?? "",
      items,
      async succeed() {
        await app.store.mirror.applyRecords([{ shop, records: [], inboxNumbers }], clock.now(), []);
        resolve();
      },
      fail: reject,
    };
    calls.push(call);
    unended.add(call);
    return promise.finally(() => unended.delete(call));
  }

  return {
    handle,
    unended,
    callCount: () => calls.length,
    /** Returns the calls that began since the last `newCalls`. */
    newCalls(): Call[] {
      const seen = calls;
      calls = [];
      return seen;
    },
  };
}

/**
 * Makes functions that put items into the inbox of a named shop, and list these items. The first use of a name adds the
 * shop.
 */
function namedShops({ app, clock, addShop }: TestApp) {
  const shops = new Map<string, Shop>();

  async function shopOf(name: string): Promise<Shop> {
    const shop = shops.get(name) ?? (await addShop(`${name}.myshopify.com`)).shop;
    shops.set(name, shop);
    return shop;
  }

  /** The items of the shop, newest first. */
  async function entries(name: string): Promise<InboxEntry[]> {
    return app.store.inbox.list((await shopOf(name)).id, { limit: 100 });
  }

  return {
    shopOf,
    /** Puts one item about each subject into the inbox. */
    async receive(name: string, subjects: readonly string[], needsPlatform = true, waitMs = 0): Promise<void> {
      const { id: shopId } = await shopOf(name);
      const same = { shopId, webhookId: null, topic: "orders/create", body: "{}", triggeredAt: START };
      const receipts = subjects.map((subject) => ({ ...same, subject, needsPlatform, waitMs }));
      await app.store.inbox.receive(receipts, clock.now());
    },
    entries,
    /** The time until each item of the shop is due, the oldest first. */
    async waits(name: string): Promise<(number | null)[]> {
      const times = (await entries(name)).map(({ nextAttemptAt }) => nextAttemptAt);
      return times.map((time) => (time === null ? null : time - clock.ms)).toReversed();
    },
  };
}

/** Starts a processor with a real inbox. Its handler waits for the test. */
export async function processing(membership = soleMember()) {
  const test = await testApp();
  const { app, clock } = test;
  const { handle, unended, ...handler } = slowHandler(test);
  const slowShops = new Set<number>();
  const logged: string[] = [];
  let pause: PromiseWithResolvers<void> | undefined;
  const processor = createInboxProcessor({
    membership,
    inbox: app.store.inbox,
    shops: app.store.shops,
    handle,
    isSlow: (shopId) => slowShops.has(shopId),
    now: clock.now,
    clock: clock.monotonic,
    sleep: async () => {
      pause = Promise.withResolvers<void>();
      await pause.promise;
    },
    log: createLog("warn", { write: (text) => logged.push(text) }, clock.now),
  });
  afterTest(async () => {
    pause?.resolve();
    const stopping = processor.stop();
    for (const call of unended) call.fail(new Error("the test ended"));
    await stopping;
  });

  /** Lets the processor start everything that it may start now. */
  async function settle(): Promise<void> {
    for (let round = 0; round < 20; round += 1) await new Promise((next) => setImmediate(next));
  }

  async function wake(): Promise<void> {
    processor.wake();
    await settle();
  }

  return {
    store: app.store,
    processor,
    clock,
    logged,
    /** Shops whose platform answers slowly. */
    slowShops,
    settle,
    wake,
    /** Wakes the processor. @returns the new calls */
    async nextCalls(): Promise<Call[]> {
      await wake();
      return handler.newCalls();
    },
    /** Lets the processor go on by itself. @returns the new calls */
    async settledCalls(): Promise<Call[]> {
      await settle();
      return handler.newCalls();
    },
    endPause: () => pause?.resolve(),
    ...handler,
    ...namedShops(test),
  };
}

/** Starts a processor, and lets it begin to process these subjects of the shop `a`. */
export async function processingOf(subjects: readonly string[]) {
  const all = await processing();
  await all.receive("a", subjects);
  await all.wake();
  return all;
}

/** Makes this many subjects, numbered from 1. */
export function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${name}${n + 1}`);
}

/** The shop and the subject of each call. */
export function bySubject(calls: readonly Call[]): string[] {
  return calls.map(({ domain, subject }) => `${domain} ${subject}`);
}

/** The numbers of the items of each call. */
export function numbersOf(calls: readonly Call[]): number[][] {
  return calls.map(({ items }) => items.map(({ number }) => number));
}

/** Counts the calls of each shop. */
export function countByShop(calls: readonly Call[]): Record<string, number> {
  return Object.fromEntries(
    [...Map.groupBy(calls, ({ domain }) => domain)].map(([domain, group]) => [domain, group.length]),
  );
}
