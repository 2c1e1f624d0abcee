import { type CommitResult, removedShop } from "../domain/decide/commit.ts";
import { messageOf } from "../domain/error.ts";
import type { ShopRef } from "../domain/shop.ts";
import type { Log } from "../lib/log.ts";
import { createTurnLoop } from "../lib/turn-loop.ts";
import type { Slices } from "../lib/turns.ts";
import type { Sleep } from "../lib/waits.ts";
import type { CompleteBody, IntakeBodyStore } from "../store/port/intake-bodies.ts";
import type { MirrorStore } from "../store/port/mirror.ts";
import { failureFields, StoreError } from "../store/port/store-error.ts";
import { createBodyStorage, stopped } from "./body-storage.ts";
import { createEarlierBodies } from "./earlier-bodies.ts";
import { createWaitingSenders } from "./waiting-senders.ts";

/** Limits of a commit that applies parts. The time that the last one took decides how many are applied. */
const MAX_PARTS = 16;
const MAX_CHARACTERS = 256 * 1024;
const TARGET_MS = 8;
/** How long a start waits for what an earlier run left. A body of 5 MiB takes some seconds. */
const RESUME_WAIT_MS = 10_000;
/** How often a small post looks for bodies that another process applies. */
const LOOK_MS = 50;
/** How long a small post waits for the large bodies of its shop. */
const SHOP_WAIT_MS = 10_000;

/** Applies bodies that are too large for one commit, all of their records or none. */
export interface BodyWriter {
  /**
   * Stores the parts, and then applies them in commits of their own, with other work in between. Nothing is kept if it
   * rejects before all parts are stored.
   * @param parts JSON of arrays of records that `checkBody` accepted
   * @returns a refusal if the shop was removed. `applied` resolves after the last commit. While the database fails, it
   *   waits. It rejects if the rest is dropped, and with StoreError `busy` at the stop: then the next start applies it
   * @throws StoreError; `busy` also for a body that another program removed when it started
   */
  submit(shop: ShopRef, parts: readonly string[]): Promise<{ applied: Promise<void> } | ReturnType<typeof removedShop>>;
  /**
   * Begins to apply what an earlier run of the program stored and did not apply to its end. Waits for it, but not for
   * longer than ten seconds; the rest is applied beside other work. Never rejects.
   */
  resume(): Promise<void>;
  /** Whether a body of an earlier run is not applied to its end. A newer record would be overwritten by it. */
  isBehind(shop: ShopRef): boolean;
  /**
   * Waits until the bodies of the shop that are stored are applied, but not for longer than ten seconds. A small post
   * does this first, because the rest of an older body would overwrite it.
   * @returns whether none is left
   */
  waitForBodies(shop: ShopRef): Promise<boolean>;
  /** Looks for bodies to apply, such as those of a node that stopped. */
  wake(): void;
  /** Ends after the commit that runs. The rest is applied after the next start. May be called twice. */
  stop(): Promise<void>;
}

interface Dependencies {
  mirror: Pick<MirrorStore, "applyIntakeParts">;
  bodies: IntakeBodyStore;
  slices: Slices;
  now: () => number;
  sleep: Sleep;
  log: Log;
  /** Whether other nodes use the database too. */
  isShared: boolean;
  /** Called after a commit that queued deliveries. */
  onQueued: () => void;
}

export function createBodyWriter(dependencies: Dependencies): BodyWriter {
  const { mirror, bodies, slices, now, sleep, log, isShared, onQueued } = dependencies;
  const senders = createWaitingSenders();
  const earlier = createEarlierBodies(isShared);
  const stop = new AbortController();
  const storage = createBodyStorage({ bodies, slices, stop: stop.signal, onBegun: earlier.noteOwn });
  /** The looks for bodies that another process applies, by shop: however many posts wait, one of them asks. */
  const looks = new Map<number, Promise<void>>();
  let parts = 1;
  let resuming: Promise<void> | undefined;
  const loop = createTurnLoop({
    turn,
    sleep,
    onFailure: (thrown) => {
      const message = "cannot apply a body of the intake; nothing is lost, the next turn tries again";
      log.error(message, failureFields(thrown));
    },
  });

  /**
   * Applies a slice of the oldest body of each shop in turn, until no body waits. Bodies of other nodes are left to
   * them: both would wait for the lock of the shop. Only a start applies them too, because a node that was killed just
   * now still counts as alive.
   */
  async function turn(): Promise<void> {
    while (!stop.signal.aborted) {
      const asked = senders.numbers();
      const oldest = await bodies.oldestOfEachShop();
      earlier.note(oldest);
      senders.note(oldest, asked);
      const own = oldest.filter(({ isOfOther, shop }) => !isOfOther || earlier.isBehind(shop.id));
      for (const body of own) {
        await slices.next();
        if (!stop.signal.aborted) await applySlice(body);
      }
      if (own.length > 0) continue;
      if (asked.size === 0) return;
      // Those of this node wait behind another one's.
      await sleep(LOOK_MS, stop.signal);
    }
  }

  async function applySlice(body: CompleteBody): Promise<void> {
    const began = performance.now();
    try {
      const result = await mirror.applyIntakeParts(body, { parts, characters: MAX_CHARACTERS }, now());
      if (result !== undefined) noteResult(result);
    } catch (thrown) {
      // Its sender goes on waiting. If it heard of a failure, it could send a newer record, which the rest overwrites.
      if (thrown instanceof StoreError && thrown.reason !== "conflict") throw thrown;
      await drop(body, thrown);
    }
    const tookMs = performance.now() - began;
    parts = tookMs > TARGET_MS ? Math.max(1, Math.floor(parts / 2)) : Math.min(MAX_PARTS, parts + 1);
  }

  function noteResult(result: CommitResult): void {
    if ("refused" in result) throw new Error(`a checked record was refused: ${result.refused.reason}`);
    if (result.events > 0) onQueued();
  }

  /** Drops a body that would fail again and again, and hold up the others. */
  async function drop({ number, shop, isOfOther }: CompleteBody, thrown: unknown): Promise<void> {
    // Its sender would take it for applied. That node has the same failure, and drops it.
    if (isOfOther) throw thrown;
    const fields = { shop: shop.domain, body: number, error: messageOf(thrown) };
    log.error("the rest of a body of the intake cannot be applied and is dropped", fields);
    try {
      await bodies.remove(shop.id, number);
    } finally {
      // Also when some of it is left: once it is given up it looks like one that was applied.
      senders.fail(number, thrown);
    }
  }

  /** Resolves when no body of the shop waited a moment ago, or at the stop. */
  function untilNoneSeen(shopId: number): Promise<void> {
    const known = looks.get(shopId);
    if (known !== undefined) return known;
    const look = lookUntilNone(shopId).finally(() => looks.delete(shopId));
    // Those who wait may all have given up.
    look.catch(() => undefined);
    looks.set(shopId, look);
    return look;
  }

  async function lookUntilNone(shopId: number): Promise<void> {
    do await sleep(LOOK_MS, stop.signal);
    while (!stop.signal.aborted && (await bodies.isWaiting(shopId)));
  }

  async function resume(): Promise<void> {
    earlier.begin();
    try {
      await bodies.removeIncomplete();
      earlier.note(await bodies.oldestOfEachShop());
    } catch (thrown) {
      log.error("cannot read the bodies of the intake; the next turn tries again", failureFields(thrown));
    }
    loop.wake();
    if (earlier.shops === 0) return;
    log.info("bodies of the intake that the last run did not finish are applied first", { shops: earlier.shops });
    const end = new AbortController();
    const signal = AbortSignal.any([stop.signal, end.signal]);
    await Promise.race([earlier.applied, sleep(RESUME_WAIT_MS, signal), untilStopped(stop.signal)]);
    end.abort();
    if (earlier.shops === 0 || stop.signal.aborted) return;
    const fields = { shops: earlier.shops };
    log.warn("bodies of the last run take long to apply; until then these shops get 503 from the intake", fields);
  }

  return {
    async submit(shop, all) {
      const number = await storage.store(shop, all);
      if (number === undefined) return removedShop(shop);
      const applied = senders.wait({ number, shop });
      if (stop.signal.aborted) senders.fail(number, stopped());
      loop.wake();
      return { applied };
    },

    resume() {
      resuming ??= resume();
      return resuming;
    },

    async waitForBodies({ id }) {
      if (senders.endsOf(id).length === 0 && !(await bodies.isWaiting(id))) return true;
      const end = new AbortController();
      const isLate = sleep(SHOP_WAIT_MS, AbortSignal.any([stop.signal, end.signal])).then(() => true);
      try {
        for (let ends = senders.endsOf(id); ends.length > 0; ends = senders.endsOf(id)) {
          if (await Promise.race([Promise.allSettled(ends).then(() => false), isLate])) return false;
        }
        while (!stop.signal.aborted && (await bodies.isWaiting(id)))
          if (await Promise.race([untilNoneSeen(id).then(() => false), isLate])) return false;
        return !stop.signal.aborted;
      } finally {
        end.abort();
      }
    },

    isBehind: ({ id }) => earlier.isBehind(id),

    wake: loop.wake,

    async stop() {
      stop.abort();
      await Promise.all([storage.drain(), resuming]);
      await loop.stop();
      senders.failAll(stopped());
    },
  };
}

function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
