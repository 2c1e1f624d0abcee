import type { ShopRef } from "../domain/shop.ts";
import type { Slices } from "../lib/turns.ts";
import type { IntakeBodyStore } from "../store/port/intake-bodies.ts";
import { StoreError } from "../store/port/store-error.ts";

/** Characters of the parts that are stored in one commit. */
const CHARACTERS_PER_ADD = 256 * 1024;

/** Stores large bodies part by part, with other work in between. */
export interface BodyStorage {
  /**
   * Stores a body whole, so that it is applied also after a restart. Nothing is kept if it rejects.
   * @returns its number; undefined if the shop was removed
   * @throws StoreError; `busy` also after the stop, and for a body that another program removed when it started
   */
  store(shop: ShopRef, parts: readonly string[]): Promise<number | undefined>;
  /** Waits for the bodies that are being stored. After the stop they end at once. Never rejects. */
  drain(): Promise<void>;
}

interface Dependencies {
  bodies: Pick<IntakeBodyStore, "begin" | "add" | "complete" | "canBegin" | "remove">;
  slices: Slices;
  /** Aborted at the stop. */
  stop: AbortSignal;
  /** Called with the number of each body before its parts are stored. */
  onBegun: (number: number) => void;
}

export function createBodyStorage({ bodies, slices, stop, onBegun }: Dependencies): BodyStorage {
  const storing = new Set<Promise<unknown>>();

  async function store(shop: ShopRef, parts: readonly string[]): Promise<number | undefined> {
    const number = await bodies.begin(shop.id);
    if (number === undefined) return undefined;
    onBegun(number);
    try {
      for (const group of groupsOf(parts)) {
        await slices.next();
        if (stop.aborted) throw stopped();
        await bodies.add(shop.id, number, group);
      }
      await slices.next();
      if (await bodies.complete(shop.id, number, parts.length)) return number;
    } catch (thrown) {
      // What cannot be removed now is removed at the next start.
      await bodies.remove(shop.id, number).catch(() => undefined);
      if (!(thrown instanceof StoreError && thrown.reason === "conflict")) throw thrown;
    }
    if (!(await bodies.canBegin(shop.id))) return undefined;
    throw new StoreError("busy", new Error("another program that started removed a body that was being stored"));
  }

  return {
    async store(shop, parts) {
      if (stop.aborted) throw stopped();
      const stored = store(shop, parts);
      storing.add(stored);
      return stored.finally(() => storing.delete(stored));
    },
    async drain() {
      await Promise.allSettled(storing);
    },
  };
}

/** The error for everybody who waits for a body when the program stops. */
export function stopped(): StoreError {
  return new StoreError("busy", new Error("the program stops, and applies the rest of the body after its next start"));
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
