import type { IntakeBody } from "../store/port/intake-bodies.ts";

/** Tells which shops have bodies that an earlier run of the program did not apply to their end. */
export interface EarlierBodies {
  /** How many shops have one. */
  readonly shops: number;
  /** Resolves when no shop has one any more. */
  readonly applied: Promise<void>;
  /** From now on it is unknown, until something is noted. A new one knows that there is none. */
  begin(): void;
  /** @returns true also while it is unknown */
  isBehind(shopId: number): boolean;
  /** Notes the number of a body of this run: those of earlier runs have lower ones. */
  noteOwn(number: number): void;
  /** @param oldest the oldest complete body of each shop that has one */
  note(oldest: readonly IntakeBody[]): void;
}

/** @param isShared whether other nodes store bodies meanwhile, which are not earlier */
export function createEarlierBodies(isShared: boolean): EarlierBodies {
  const { promise: applied, resolve } = Promise.withResolvers<void>();
  let firstOwn = Number.POSITIVE_INFINITY;
  /** By shop id; undefined while it is unknown. */
  let behind: ReadonlySet<number> | undefined = new Set();
  return {
    get shops() {
      return behind?.size ?? 0;
    },
    applied,
    begin() {
      behind = undefined;
    },
    isBehind: (shopId) => behind === undefined || behind.has(shopId),
    noteOwn(number) {
      firstOwn = Math.min(firstOwn, number);
    },
    note(oldest) {
      // Once all are applied, what is complete is of this run, or of another program that runs now.
      if (behind?.size === 0) return;
      if (isShared) firstOwn = Math.min(firstOwn, Math.max(0, ...oldest.map(({ number }) => number)) + 1);
      behind = new Set(oldest.filter(({ number }) => number < firstOwn).map(({ shop }) => shop.id));
      if (behind.size === 0) resolve();
    },
  };
}
