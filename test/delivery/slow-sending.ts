import { soleMember } from "../../src/cluster/membership.ts";
import type { AttemptOutcome } from "../../src/delivery/attempt.ts";
import { createSender, type SenderSettings } from "../../src/delivery/sender.ts";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { createLog } from "../../src/lib/log.ts";
import type { Sleep } from "../../src/lib/waits.ts";
import type { Claim, DeliveryStore } from "../../src/store/port/deliveries.ts";
import { TOKENS } from "../conformance/fixtures.ts";
import { START, type TestApp, testApp } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { subscription } from "../support/records.ts";

export const MINUTE = 60_000;
export const OK: AttemptOutcome = { statusCode: 200, error: null, timedOut: false };
export const FAILED: AttemptOutcome = {
  statusCode: 500,
  error: "The endpoint responded with HTTP 500.",
  timedOut: false,
};

/** One attempt, which the test ends. */
export interface Attempt {
  claim: Claim;
  end(outcome?: AttemptOutcome): void;
  fail(error: Error): void;
}

/** Makes attempts that end only when the test ends them. */
function heldAttempts() {
  const begun: Attempt[] = [];
  const unended = new Set<Attempt>();
  function attempt(claim: Claim): Promise<AttemptOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<AttemptOutcome>();
    const held = { claim, end: (outcome = OK) => resolve(outcome), fail: reject };
    begun.push(held);
    unended.add(held);
    return promise.finally(() => unended.delete(held));
  }
  return { attempt, begun, unended };
}

/** Makes pauses that end only when the test or a signal ends them. */
function heldPauses() {
  let endPause = () => {};
  const sleep: Sleep = (_ms, signal) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    endPause = resolve;
    if (signal?.aborted) resolve();
    signal?.addEventListener("abort", () => resolve());
    return promise;
  };
  return { sleep, endPause: () => endPause() };
}

/** Waits until the sender has done everything that it can do now. */
async function settle(): Promise<void> {
  for (let round = 0; round < 20; round += 1) await new Promise((next) => setImmediate(next));
}

/** Adds shops with deliveries. */
function shopsIn({ app, clock, addShop: add }: TestApp) {
  const { webhooks, mirror, connections, shops } = app.store;
  /** Queues deliveries about contracts with these numbers. */
  async function queue(shop: Shop, first: number, last: number): Promise<void> {
    const records = Array.from({ length: last - first + 1 }, (_, n) => subscription(first + n));
    await mirror.applyRecords([{ shop, records }], clock.now(), []);
  }
  return {
    queue,
    /** Adds a shop with this many deliveries due. */
    async addShop(name: string, count: number): Promise<Shop> {
      const { shop } = await add(`${name}.myshopify.com`);
      await webhooks.set(shop.id, { url: "https://hooks.example.com/", topics: ["subscription.created"] }, START);
      await queue(shop, 1, count);
      return shop;
    },
    /** From now on, each contract queues a workflow trigger too. */
    async chooseTriggers({ id, domain }: Shop): Promise<void> {
      await connections.connect(id, "token", TOKENS, [], START);
      await shops.set(domain, { triggers: TRIGGER_HANDLES });
    },
    setUrl: (shop: Shop, url: string) => webhooks.set(shop.id, { url }, START),
  };
}

/** Watches a store's deliveries, and makes them fail. */
function watched(deliveries: DeliveryStore) {
  return {
    deliveries,
    log: (shop: Shop) => deliveries.list(shop.id, { limit: 20 }),
    /** From now on, notes how many results each transaction records. @returns the notes */
    noteRecorded(): number[] {
      const { recordAndClaim } = deliveries;
      const recorded: number[] = [];
      deliveries.recordAndClaim = (ended, ...rest) => {
        recorded.push(ended.length);
        return recordAndClaim(ended, ...rest);
      };
      return recorded;
    },
    /** Makes the database fail, until the returned function is called. */
    breakDatabase(): () => void {
      const { dueQueues, recordAndClaim } = deliveries;
      deliveries.dueQueues = () => Promise.reject(new Error("disk I/O error"));
      deliveries.recordAndClaim = () => Promise.reject(new Error("disk I/O error"));
      return () => Object.assign(deliveries, { dueQueues, recordAndClaim });
    },
  };
}

/** Starts a sender with a real database. Its attempts end only when the test ends them. */
export async function sendingSlowly(changed: Partial<SenderSettings> = {}) {
  const test = await testApp();
  // The monotonic clock. Attempts take no time until the test moves it.
  const steady = { ms: 0 };
  const { clock } = test;
  const { deliveries } = test.app.store;
  const logged: string[] = [];
  const { attempt, begun, unended } = heldAttempts();
  const { sleep, endPause } = heldPauses();
  const log = createLog("debug", { write: (text) => logged.push(text) }, clock.now);
  const sender = createSender(
    { deliveries, attempt, membership: soleMember(), now: clock.now, clock: () => steady.ms, sleep, log },
    { concurrency: 8, perShop: 4, timeoutMs: 10_000, isShared: false, waitsMs: [2 * MINUTE, 4 * MINUTE], ...changed },
  );
  afterTest(async () => {
    const stopping = sender.stop();
    for (const each of unended) each.end();
    await stopping;
  });
  const shops = shopsIn(test);

  async function wake(): Promise<void> {
    sender.wake();
    await settle();
  }
  /** Ends attempts at the same moment. */
  async function end(attempts: readonly (Attempt | undefined)[], outcome?: AttemptOutcome): Promise<void> {
    for (const each of attempts) each?.end(outcome);
    await settle();
  }
  return {
    ...shops,
    ...watched(deliveries),
    sender,
    clock,
    steady,
    logged,
    settle,
    endPause,
    wake,
    end,
    /** Adds a shop with this many deliveries due, and begins the attempts. */
    async begin(name: string, count: number): Promise<Shop> {
      const shop = await shops.addShop(name, count);
      await wake();
      return shop;
    },
    /**
     * Adds a shop with this many deliveries due, and ends its first three attempts.
     * @returns the shop, and the four attempts that run afterwards
     */
    async beginFour(name: string, count: number): Promise<{ shop: Shop; running: Attempt[] }> {
      const shop = await shops.addShop(name, count);
      await wake();
      for (let round = 0; round < 2; round += 1) await end(begun.splice(0));
      return { shop, running: begun.splice(0) };
    },
    /** Returns the attempts that began since the last call. */
    newAttempts: () => begun.splice(0),
    /** Ends the attempts that began since the last call. */
    endNew: (outcome?: AttemptOutcome) => end(begun.splice(0), outcome),
  };
}

/** Names the shop and the contract of each attempt. */
export function contracts(attempts: readonly Attempt[]): string[] {
  return attempts.map(({ claim }) => `${claim.shopId} ${JSON.parse(claim.body).data.contract_id.split("/").at(-1)}`);
}
