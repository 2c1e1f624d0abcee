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

/** Characters that are stored in one commit, of the parts of a body. */
const CHARACTERS_PER_ADD = 256 * 1024;
/** Limits of a commit that applies parts. The time that the last one took decides how many are applied. */
const MAX_PARTS = 16;
const MAX_CHARACTERS = 256 * 1024;
const TARGET_MS = 8;

/** Applies bodies that are too large for one commit, all of their records or none. */
export interface BodyWriter {
  /**
   * Stores the parts, and then applies them in commits of their own, with other work in between. Nothing is kept if it
   * rejects before all parts are stored.
   * @param parts JSON of arrays of records that `checkBody` accepted
   * @returns a refusal if the shop was removed. `applied` resolves after the last commit; if it rejects because of the
   *   database, the rest is applied later
   */
  submit(shop: ShopRef, parts: readonly string[]): Promise<{ applied: Promise<void> } | ReturnType<typeof removedShop>>;
  /** Applies what an earlier run of the program stored and did not apply to its end. */
  resume(): Promise<void>;
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

export function createBodyWriter({ mirror, bodies, slices, now, sleep, log, onQueued }: Dependencies): BodyWriter {
  /** Who waits for the end of each body. */
  const waiting = new Map<number, PromiseWithResolvers<void>>();
  let stopping = false;
  let parts = 1;
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
    while (!stopping) {
      const complete = await bodies.waiting();
      settle(complete);
      if (complete.length === 0) return;
      for (const body of oldestOfEachShop(complete)) {
        await slices.next();
        if (!stopping) await applySlice(body);
      }
    }
  }

  /** A body that does not wait any more was applied, or was removed with its shop. */
  function settle(complete: readonly IntakeBody[]): void {
    const numbers = new Set(complete.map(({ number }) => number));
    for (const [number, { resolve }] of waiting) {
      if (numbers.has(number)) continue;
      waiting.delete(number);
      resolve();
    }
  }

  async function applySlice(body: IntakeBody): Promise<void> {
    const began = performance.now();
    try {
      const result = await mirror.applyIntakeParts(body, { parts, characters: MAX_CHARACTERS }, now());
      if (result !== undefined) noteResult(result);
    } catch (thrown) {
      fail(body, thrown);
      if (thrown instanceof StoreError && thrown.reason !== "conflict") throw thrown;
      // It would fail again and again, and hold up the others.
      const fields = { shop: body.shop.domain, body: body.number, error: messageOf(thrown) };
      log.error("the rest of a body of the intake cannot be applied and is dropped", fields);
      await bodies.remove(body.shop.id, body.number);
    }
    const tookMs = performance.now() - began;
    parts = tookMs > TARGET_MS ? Math.max(1, Math.floor(parts / 2)) : Math.min(MAX_PARTS, parts + 1);
  }

  function noteResult(result: CommitResult): void {
    if ("refused" in result) throw new Error(`a checked record was refused: ${result.refused.reason}`);
    if (result.events > 0) onQueued();
  }

  function fail({ number }: IntakeBody, thrown: unknown): void {
    waiting.get(number)?.reject(thrown);
    waiting.delete(number);
  }

  async function store(shop: ShopRef, all: readonly string[]): Promise<number | undefined> {
    const number = await bodies.begin(shop.id);
    if (number === undefined) return undefined;
    try {
      for (const group of groupsOf(all)) {
        await slices.next();
        await bodies.add(shop.id, number, group);
      }
      await slices.next();
      if (await bodies.complete(shop.id, number, all.length)) return number;
    } catch (thrown) {
      // What cannot be removed now is removed at the next start.
      await bodies.remove(shop.id, number).catch(() => undefined);
      if (!(thrown instanceof StoreError && thrown.reason === "conflict")) throw thrown;
    }
    return undefined;
  }

  return {
    async submit(shop, all) {
      const number = await store(shop, all);
      if (number === undefined) return removedShop(shop);
      const end = Promise.withResolvers<void>();
      waiting.set(number, end);
      loop.wake();
      return { applied: end.promise };
    },

    async resume() {
      try {
        await bodies.removeIncomplete();
        await turn();
      } catch (thrown) {
        log.error("cannot apply a body of the intake; the next turn tries again", { error: messageOf(thrown) });
        loop.wake();
      }
    },

    async stop() {
      stopping = true;
      await loop.stop();
    },
  };
}

function oldestOfEachShop(complete: readonly IntakeBody[]): IntakeBody[] {
  const oldest = new Map<number, IntakeBody>();
  for (const body of complete) if (!oldest.has(body.shop.id)) oldest.set(body.shop.id, body);
  return [...oldest.values()];
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
