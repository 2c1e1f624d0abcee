import { type CommitResult, removedShop } from "../domain/commit.ts";
import { messageOf } from "../domain/error.ts";
import type { ShopRef } from "../domain/shop.ts";
import type { Sleep } from "../lib/sleep.ts";
import type { Slices } from "../lib/slices.ts";
import { createTurnLoop } from "../lib/turn-loop.ts";
import type { Log } from "../log.ts";
import type { IntakeBody, IntakeBodyStore } from "../store/intake-bodies.ts";
import type { MirrorStore } from "../store/mirror.ts";
import { StoreError } from "../store/store-error.ts";
import { createEarlierBodies } from "./earlier-bodies.ts";

/** Characters that are stored in one commit, of the parts of a body. */
const CHARACTERS_PER_ADD = 256 * 1024;
/** Limits of a commit that applies parts. The time that the last one took decides how many are applied. */
const MAX_PARTS = 16;
const MAX_CHARACTERS = 256 * 1024;
const TARGET_MS = 8;
/** How long a start waits for what an earlier run left. A body of 5 MiB takes some seconds. */
const RESUME_WAIT_MS = 10_000;

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
  /** Called after a commit that queued deliveries. */
  onQueued: () => void;
}

export function createBodyWriter(dependencies: Dependencies): BodyWriter {
  const { mirror, bodies, slices, now, sleep, log, onQueued } = dependencies;
  /** Who waits for the end of each body. */
  const waiting = new Map<number, { shopId: number; end: PromiseWithResolvers<void> }>();
  /** The parts that are being stored. */
  const storing = new Set<Promise<unknown>>();
  const earlier = createEarlierBodies();
  const stop = new AbortController();
  let parts = 1;
  let resuming: Promise<void> | undefined;
  const loop = createTurnLoop({
    turn,
    sleep,
    onFailure: (thrown) => {
      const fields = { error: messageOf(thrown) };
      log.error("cannot apply a body of the intake; nothing is lost, the next turn tries again", fields);
    },
  });

  /** Applies a slice of the oldest body of each shop in turn, until no body waits. */
  async function turn(): Promise<void> {
    while (!stop.signal.aborted) {
      const oldest = await bodies.oldestOfEachShop();
      earlier.note(oldest);
      settle(oldest);
      if (oldest.length === 0) return;
      for (const body of oldest) {
        await slices.next();
        if (!stop.signal.aborted) await applySlice(body);
      }
    }
  }

  /** A body before its shop's oldest was applied, or was removed with its shop. */
  function settle(oldest: readonly IntakeBody[]): void {
    const oldestOf = new Map(oldest.map(({ number, shop }) => [shop.id, number]));
    for (const [number, { shopId, end }] of waiting) {
      if (number >= (oldestOf.get(shopId) ?? Number.POSITIVE_INFINITY)) continue;
      waiting.delete(number);
      end.resolve();
    }
  }

  async function applySlice(body: IntakeBody): Promise<void> {
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
  async function drop({ number, shop }: IntakeBody, thrown: unknown): Promise<void> {
    const fields = { shop: shop.domain, body: number, error: messageOf(thrown) };
    log.error("the rest of a body of the intake cannot be applied and is dropped", fields);
    await bodies.remove(shop.id, number);
    waiting.get(number)?.end.reject(thrown);
    waiting.delete(number);
  }

  /** @returns undefined if the shop was removed */
  async function store(shop: ShopRef, all: readonly string[]): Promise<number | undefined> {
    const number = await bodies.begin(shop.id);
    if (number === undefined) return undefined;
    earlier.noteOwn(number);
    try {
      for (const group of groupsOf(all)) {
        await slices.next();
        if (stop.signal.aborted) throw stopped();
        await bodies.add(shop.id, number, group);
      }
      await slices.next();
      if (await bodies.complete(shop.id, number, all.length)) return number;
    } catch (thrown) {
      // What cannot be removed now is removed at the next start.
      await bodies.remove(shop.id, number).catch(() => undefined);
      if (!(thrown instanceof StoreError && thrown.reason === "conflict")) throw thrown;
    }
    if (!(await bodies.canBegin(shop.id))) return undefined;
    throw new StoreError("busy", new Error("another program that started removed a body that was being stored"));
  }

  async function resume(): Promise<void> {
    earlier.begin();
    try {
      await bodies.removeIncomplete();
      earlier.note(await bodies.oldestOfEachShop());
    } catch (thrown) {
      log.error("cannot read the bodies of the intake; the next turn tries again", { error: messageOf(thrown) });
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
      if (stop.signal.aborted) throw stopped();
      const stored = store(shop, all);
      storing.add(stored);
      const number = await stored.finally(() => storing.delete(stored));
      if (number === undefined) return removedShop(shop);
      const end = Promise.withResolvers<void>();
      // Its sender may have gone.
      end.promise.catch(() => undefined);
      if (stop.signal.aborted) end.reject(stopped());
      else waiting.set(number, { shopId: shop.id, end });
      loop.wake();
      return { applied: end.promise };
    },

    resume() {
      resuming ??= resume();
      return resuming;
    },

    isBehind: ({ id }) => earlier.isBehind(id),

    async stop() {
      stop.abort();
      await Promise.allSettled([...storing, resuming]);
      await loop.stop();
      for (const { end } of waiting.values()) end.reject(stopped());
      waiting.clear();
    },
  };
}

function stopped(): StoreError {
  return new StoreError("busy", new Error("the program stops, and applies the rest of the body after its next start"));
}

function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function* groupsOf(parts: readonly string[]): Generator<string[]> {
  let group: string[] = [];
  let characters = 0;
  for (const part of parts) {
    group.push(part);
    characters += part.length;
    if (characters < CHARACTERS_PER_ADD) continue;
    yield group;
    group = [];
    characters = 0;
  }
  if (group.length > 0) yield group;
}
