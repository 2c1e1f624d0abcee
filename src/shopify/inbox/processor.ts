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
import { PlatformError } from "../api/platform-error.ts";
import { LONGEST_BURST_MS } from "../api/topics.ts";
import { createInboxCapacity, type InboxCapacity } from "./capacity.ts";
import { createReadAhead } from "./read-ahead.ts";

const MINUTE_MS = 60_000;
/** The wait after each failed attempt: about 16 hours in all, because the platform may be down for long. */
const WAITS_MS = [5_000, 15_000, ...[1, 5, 15, 30, 60, 120, 240, 480].map((minutes) => minutes * MINUTE_MS)];
const LONGEST_WAIT_MS = Math.max(...WAITS_MS);
/** How many platform webhooks about one subject are processed together at most: their bodies are in memory. */
const MAX_TOGETHER = 500;

interface Dependencies {
  inbox: Pick<InboxStore, "dueQueues" | "due" | "waitingAbout" | "postpone" | "bringForward">;
  shops: Pick<ShopStore, "byId">;
  /** Processes webhooks of the platform about one subject, and removes them from the inbox. Rejects if it cannot. */
  handle: (shop: Shop, items: readonly InboxItem[]) => Promise<void>;
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
  /** Whether it reads or processes platform webhooks now. */
  readonly working: boolean;
  /** Asks for a turn: once a second, and when something was received. */
  wake(): void;
  /** Starts nothing more and waits for what is under way. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Processes the platform webhooks in the inbox. Those about one subject are processed one after another; when one is
 * due, all that wait are processed together. A failed attempt is repeated, after longer and longer waits. After the
 * last one, the platform webhook stays in the inbox as failed.
 */
export function createInboxProcessor(dependencies: Dependencies): InboxProcessor {
  const { inbox, isSlow, membership, now, clock, sleep, log } = dependencies;
  const capacity = createInboxCapacity(isSlow, clock);
  const rotation = createRotation();
  /** The subjects under way, each with its shop. */
  const underWay = new Set<string>();
  const ahead = createReadAhead(inbox, (shopId, subject) => underWay.has(keyOf(shopId, subject)), now);
  const loop = createTurnLoop({
    turn,
    sleep,
    onFailure: (thrown) => {
      const message = "cannot read or update the inbox; nothing is lost, the next turn tries again";
      log.error(message, failureFields(thrown));
    },
  });
  /** The wall clock at the last turn. */
  let lastTurnAt = Number.POSITIVE_INFINITY;
  const process = createAttempt(dependencies, capacity, () => loop.stopping);

  /** Starts one subject of each queue in turn, until no queue has a subject that may start. */
  async function turn(): Promise<void> {
    if (loop.stopping) return;
    await noteClock(now());
    let round = rotation.order(await inbox.dueQueues(now()), ({ shopId }) => shopId);
    while (round.length > 0 && !loop.stopping) {
      const started: InboxQueue[] = [];
      for (const queue of round) if (await startNext(queue)) started.push(queue);
      round = started;
    }
  }

  /** At the first turn, and whenever the clock was set back, what a clock that was ahead planned is due. */
  async function noteClock(at: number): Promise<void> {
    if (at < lastTurnAt) {
      const latest = { first: at + LONGEST_BURST_MS, further: at + LONGEST_WAIT_MS };
      const count = await inbox.bringForward(latest, at);
      if (count > 0) log.warn("platform webhooks that were planned by a clock that was ahead are due now", { count });
    }
    lastTurnAt = at;
  }

  async function startNext(queue: InboxQueue): Promise<boolean> {
    if (!capacity.allows(queue)) return false;
    const letGo = membership.beginUnlessMoving(queue.shopId);
    if (letGo === undefined) return false;
    const subject = await ahead.take(queue).catch((thrown: unknown) => {
      letGo();
      throw thrown;
    });
    if (subject === undefined) {
      letGo();
      return false;
    }
    rotation.noteServed(queue.shopId);
    const key = keyOf(queue.shopId, subject);
    const end = capacity.start(queue);
    underWay.add(key);
    const work = process(queue, subject).finally(() => {
      end();
      letGo();
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

/** Makes a function that processes items about one subject, or postpones them. It rejects if the database fails. */
function createAttempt(dependencies: Dependencies, capacity: InboxCapacity, isStopping: () => boolean) {
  const { inbox, shops, handle, membership, now, log } = dependencies;

  async function postpone(shop: Shop, items: InboxItem[], thrown: unknown): Promise<void> {
    // The item with the fewest attempts counts for all of them.
    const attempts = Math.min(...items.map((item) => item.attempts)) + 1;
    // A request to remove a shop is never given up.
    const lastWaitMs = items.some(({ topic }) => topic === REMOVAL_TOPIC) ? LONGEST_WAIT_MS : undefined;
    const waitMs = WAITS_MS[attempts - 1] ?? lastWaitMs;
    await inbox.postpone(
      shop.id,
      items.map(({ number }) => number),
      messageOf(thrown),
      waitMs === undefined ? null : now() + waitMs,
    );
    const fields = { shop: shop.domain, subject: items[0]?.subject, attempts, error: messageOf(thrown) };
    if (waitMs === undefined) log.error("cannot process a platform webhook; it stays in the inbox as failed", fields);
    else log.warn("cannot process a platform webhook; it is processed again later", { ...fields, waitMs });
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
      // The stop may have caused the error, so it is no failed attempt. The items stay in the inbox as they are.
      if (isStopping()) return;
      // Another node has taken the shop over, or does so next.
      if (!membership.mayBegin(shopId)) return;
      if (thrown instanceof PlatformError && thrown.reason !== "refused") capacity.noteFailure(shopId);
      await postpone(shop, items, thrown);
    }
  };
}

function keyOf(shopId: number, subject: string): string {
  return `${shopId} ${subject}`;
}
