import { soleMember } from "../../../src/cluster/membership.ts";
import type { Shop } from "../../../src/domain/shop.ts";
import { createLog } from "../../../src/lib/log.ts";
import { PlatformError } from "../../../src/shopify/api/platform-error.ts";
import { createInboxProcessor } from "../../../src/shopify/inbox/processor.ts";
import type { InboxItem } from "../../../src/store/port/inbox.ts";
import { START, testApp } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";

export const SECOND = 1_000;
export const MINUTE = 60_000;
export const DOWN = new PlatformError("unavailable", "the platform answered HTTP 503");

/** One call of the handler, which the test ends. */
export interface Call {
  domain: string;
  subject: string;
  items: readonly InboxItem[];
  /** Removes the items from the inbox, as the real handler does. */
  succeed(): Promise<void>;
  fail(error: Error): void;
}

/** Starts a processor with a real inbox. Its handler waits for the test. */
export async function processing(membership = soleMember()) {
  const { app, clock, addShop } = await testApp();
  const { inbox, shops, mirror } = app.store;
  let calls: Call[] = [];
  const unended = new Set<Call>();
  const slowShops = new Set<number>();
  const logged: string[] = [];

  async function handle(shop: Shop, items: readonly InboxItem[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const inboxNumbers = items.map(({ number }) => number);
    const call: Call = {
      domain: shop.domain.replace(".myshopify.com", ""),
      subject: items[0]?.subject ?? "",
      items,
      async succeed() {
        await mirror.applyRecords([{ shop, records: [], inboxNumbers }], clock.now());
        resolve();
      },
      fail: reject,
    };
    calls.push(call);
    unended.add(call);
    return promise.finally(() => unended.delete(call));
  }

  let pause: PromiseWithResolvers<void> | undefined;
  const processor = createInboxProcessor({
    membership,
    inbox,
    shops,
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

  return {
    store: app.store,
    processor,
    clock,
    logged,
    settle,
    /** Shops whose platform answers slowly. */
    slowShops,
    addShop: async (name: string) => (await addShop(`${name}.myshopify.com`)).shop,
    /** Puts one item about each subject into the inbox. */
    async receive(shop: Shop, subjects: readonly string[], needsPlatform = true, waitMs = 0): Promise<void> {
      const receipts = subjects.map((subject) => {
        return {
          shopId: shop.id,
          webhookId: null,
          topic: "orders/create",
          subject,
          needsPlatform,
          body: "{}",
          triggeredAt: START,
          waitMs,
        };
      });
      await inbox.receive(receipts, clock.now());
    },
    async wake(): Promise<void> {
      processor.wake();
      await settle();
    },
    endPause: () => pause?.resolve(),
    /** Returns the calls that began since the last time. */
    newCalls(): Call[] {
      const seen = calls;
      calls = [];
      return seen;
    },
    callCount: () => calls.length,
    async waits(shop: Shop): Promise<(number | null)[]> {
      const entries = await inbox.list(shop.id, { limit: 100 });
      return entries
        .map(({ nextAttemptAt }) => (nextAttemptAt === null ? null : nextAttemptAt - clock.ms))
        .toReversed();
    },
  };
}

/** Makes this many subjects, numbered from 1. */
export function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${name}${n + 1}`);
}

/** The shop and the subject of each call. */
export function bySubject(calls: readonly Call[]): string[] {
  return calls.map(({ domain, subject }) => `${domain} ${subject}`);
}

/** Counts the calls of each shop. */
export function countByShop(calls: readonly Call[]): Record<string, number> {
  return Object.fromEntries(
    [...Map.groupBy(calls, ({ domain }) => domain)].map(([domain, group]) => [domain, group.length]),
  );
}
