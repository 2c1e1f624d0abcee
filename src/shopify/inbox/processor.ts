import type { Membership } from "../../cluster/membership.ts";
import { messageOf } from "../../domain/error.ts";
import { REMOVAL_TOPIC, type Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import { createRotation } from "../../lib/slots.ts";
import { createTurnLoop } from "../../lib/turn-loop.ts";
import type { Sleep } from "../../lib/waits.ts";
import type { InboxItem, InboxQueue, InboxStore } from "../../store/port/inbox.ts";
import type { ShopStore } from "../../store/port/shops.ts";
import { failureFields } from "../../store/port/store-error.ts";
import { isPlatformError, needsAction, PlatformError } from "../api/platform-error.ts";
import { LONGEST_BURST_MS } from "../api/topics.ts";
import { isBadData } from "../contracts/values.ts";
import { createInboxCapacity, type InboxCapacity } from "./capacity.ts";
import { mergedWebhook } from "./payload.ts";
import type { WebhookHandler } from "./webhook-handler.ts";

const MINUTE_MS = 60_000;
/** The waits after failed attempts: about 16 hours in total, because the platform may be down for hours. */
const WAITS_MS = [5_000, 15_000, ...[1, 5, 15, 30, 60, 120, 240, 480].map((minutes) => minutes * MINUTE_MS)];
const LONGEST_WAIT_MS = Math.max(...WAITS_MS);
/**
 * Maximum wait while the platform refuses the shop's connection. It is shorter than `LONGEST_WAIT_MS`: once the
 * platform accepts the connection, all webhooks can be processed.
 */
const LONGEST_REFUSED_WAIT_MS = 60 * MINUTE_MS;
/** Maximum number of webhooks about one subject that are processed together. All their bodies are in memory. */
const MAX_TOGETHER = 500;
/** Number of due items in the first read of a queue. */
const FIRST_READ_LIMIT = 500;
/** Maximum number of items in a read. A read is enlarged if all subjects that it finds are under way. */
const LAST_READ_LIMIT = 100_000;

interface Dependencies {
  inbox: Pick<InboxStore, "dueQueues" | "due" | "waitingAbout" | "postpone" | "merge" | "retryAbout" | "bringForward">;
  shops: Pick<ShopStore, "byId">;
  handle: WebhookHandler;
  /** Whether the shop's platform answers slowly. */
  isSlow: (shopId: number) => boolean;
  membership: Pick<Membership, "beginUnlessMoving" | "mayBegin">;
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  sleep: Sleep;
  log: Log;
}

export interface InboxProcessor {
  /** Whether the processor reads or processes platform webhooks now. */
  readonly working: boolean;
  /** Makes the processor look for due subjects. Called once a second, and when something was received. */
  wake(): void;
  /** Lets the work on subjects end, and begins no other subject. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Processes the platform webhooks in the inbox. Webhooks about one subject are processed one after another. When a
 * webhook is due, all waiting webhooks about its subject are processed together. A failed attempt is repeated, after
 * longer and longer waits. After the last attempt, the webhook stays in the inbox as failed.
 */
export function createInboxProcessor(dependencies: Dependencies): InboxProcessor {
  const { inbox, isSlow, membership, now, clock, sleep, log } = dependencies;
  const capacity = createInboxCapacity(isSlow, clock);
  const rotation = createRotation();
  /** The subjects under way, each with its shop. */
  const underWay = new Set<string>();
  const ahead = createReadAhead(dependencies, (shopId, subject) => underWay.has(keyOf(shopId, subject)));
  const loop = createTurnLoop({
    turn,
    sleep,
    onFailure: (thrown) => {
      const message = "cannot read or update the inbox; nothing is lost, the next turn tries again";
      log.error(message, failureFields(thrown));
    },
  });
  const correctClock = createClockCorrection(dependencies);
  const attempt = createAttempt(dependencies, capacity, () => loop.stopping);

  /** Starts one subject of each queue in turn, until no queue has a subject that may start. */
  async function turn(): Promise<void> {
    if (loop.stopping) return;
    await correctClock(now());
    let round = rotation.order(await inbox.dueQueues(now()), ({ shopId }) => shopId);
    while (round.length > 0 && !loop.stopping) {
      const started: InboxQueue[] = [];
      for (const queue of round) if (await startNext(queue)) started.push(queue);
      round = started;
    }
  }

  async function startNext(queue: InboxQueue): Promise<boolean> {
    if (!capacity.allows(queue)) return false;
    const endMembership = membership.beginUnlessMoving(queue.shopId);
    if (endMembership === undefined) return false;
    let subject: string | undefined;
    try {
      subject = await ahead.take(queue);
    } finally {
      if (subject === undefined) endMembership();
    }
    if (subject === undefined) return false;
    rotation.noteServed(queue.shopId);
    const key = keyOf(queue.shopId, subject);
    const giveBack = capacity.start(queue);
    underWay.add(key);
    const work = attempt(queue, subject).finally(() => {
      giveBack();
      endMembership();
      underWay.delete(key);
    });
    loop.track(work);
    return true;
  }

  return {
    get working() {
      return loop.busy;
    },
    wake: loop.wake,
    stop: loop.stop,
  };
}

/** Reads many due subjects of a queue at once. One read for each subject would take longer than the processing. */
function createReadAhead({ inbox, now }: Dependencies, isUnderWay: (shopId: number, subject: string) => boolean) {
  /** The subjects that were read in advance, by queue. */
  const waiting = new Map<string, Set<string>>();

  async function read(queue: InboxQueue): Promise<Set<string>> {
    const at = now();
    for (let limit = FIRST_READ_LIMIT; limit <= LAST_READ_LIMIT; limit *= 10) {
      const due = await inbox.due(queue, at, limit);
      const subjects = new Set(due.map(({ subject }) => subject).filter((each) => !isUnderWay(queue.shopId, each)));
      if (subjects.size > 0 || due.length < limit) return subjects;
    }
    return new Set();
  }

  return {
    /** Removes and returns the queue's next due subject that is not under way; undefined without such a subject. */
    async take(queue: InboxQueue): Promise<string | undefined> {
      const name = `${queue.shopId} ${queue.needsPlatform}`;
      const known = waiting.get(name) ?? (await read(queue));
      const next = [...known].find((subject) => !isUnderWay(queue.shopId, subject));
      if (next !== undefined) known.delete(next);
      if (known.size === 0) waiting.delete(name);
      else waiting.set(name, known);
      return next;
    },
  };
}

/**
 * Returns a function to call at each turn. At the first turn, and after the clock was set back, the function looks for
 * items that are planned too far ahead. It makes these items due now.
 */
function createClockCorrection({ inbox, log }: Dependencies): (at: number) => Promise<void> {
  let lastTurnAt = Number.POSITIVE_INFINITY;
  return async (at) => {
    if (at < lastTurnAt) {
      const latest = { first: at + LONGEST_BURST_MS, further: at + LONGEST_WAIT_MS };
      const count = await inbox.bringForward(latest, at);
      if (count > 0)
        log.warn("the clock was ahead: platform webhooks that were planned at that time are due now", { count });
    }
    lastTurnAt = at;
  };
}

/** Returns a function that processes or postpones the items about a subject. It rejects if the database fails. */
function createAttempt(dependencies: Dependencies, capacity: InboxCapacity, isStopping: () => boolean) {
  const { inbox, shops, handle, membership, now, log } = dependencies;

  async function postpone(shop: Shop, items: InboxItem[], thrown: unknown): Promise<void> {
    // The item with the fewest attempts decides the next wait of all items.
    const attempts = Math.min(...items.map((item) => item.attempts)) + 1;
    // While the platform refuses the connection, the webhooks are not at fault, so they are not given up.
    const waitMs = needsAction(thrown)
      ? Math.min(WAITS_MS[attempts - 1] ?? LONGEST_WAIT_MS, LONGEST_REFUSED_WAIT_MS)
      : (WAITS_MS[attempts - 1] ?? lastWaitOf(items));
    const numbers = items.map(({ number }) => number);
    const error = messageOf(thrown);
    await inbox.postpone(shop.id, numbers, error, waitMs === undefined ? null : now() + waitMs);
    const fields = { shop: shop.domain, subject: items[0]?.subject, attempts, error };
    if (isPlatformError(thrown, "outdated"))
      return log.debug("an object is read again, until it shows a change", fields);
    if (waitMs === undefined) log.error("cannot process a platform webhook; it stays in the inbox as failed", fields);
    else log.warn("cannot process a platform webhook; it is processed again later", { ...fields, waitMs });
  }

  /** Merges items about an object that may never be readable. Failed items about the same object are retried, too. */
  async function merge(shop: Shop, items: InboxItem[]): Promise<InboxItem[]> {
    const [first] = items.toSorted((a, b) => a.attempts - b.attempts);
    if (first === undefined) return items;
    await inbox.retryAbout(shop.id, first.subject, now());
    const webhook = items.length > 1 ? mergedWebhook(items) : undefined;
    if (webhook === undefined) return items;
    const triggeredAt = Math.max(...items.map((item) => item.triggeredAt));
    const merged = { ...first, topic: webhook.topic, body: webhook.body, triggeredAt };
    const others = items.filter((item) => item !== first).map(({ number }) => number);
    await inbox.merge(shop.id, merged, others);
    return [merged];
  }

  return async (queue: InboxQueue, subject: string): Promise<void> => {
    const { shopId, needsPlatform } = queue;
    const shop = await shops.byId(shopId);
    const items = await inbox.waitingAbout(queue, subject, MAX_TOGETHER);
    if (shop === undefined || items.length === 0) return;
    try {
      await handle(shop, items);
      if (needsPlatform) capacity.noteSuccess(shopId);
    } catch (thrown) {
      // The cause may be a stop, or another node that takes over the shop. Then the attempt is not counted.
      if (isStopping() || !membership.mayBegin(shopId)) return;
      if (isPlatformError(thrown, "outdated")) capacity.noteSuccess(shopId);
      else if (isPlatformError(thrown, "incomplete")) capacity.noteIncomplete(shopId);
      else if (needsAction(thrown)) capacity.noteFailure(shopId, true);
      else if (thrown instanceof PlatformError && thrown.reason !== "refused") capacity.noteFailure(shopId);
      await postpone(shop, isBadData(thrown) ? await merge(shop, items) : items, thrown);
    }
  };
}

/**
 * Returns the wait after an item's final attempt; undefined if the item is given up. A request to remove a shop is
 * never given up.
 */
function lastWaitOf(items: readonly InboxItem[]): number | undefined {
  return items.some(({ topic }) => topic === REMOVAL_TOPIC) ? LONGEST_WAIT_MS : undefined;
}

function keyOf(shopId: number, subject: string): string {
  return `${shopId} ${subject}`;
}
