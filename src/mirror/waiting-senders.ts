import type { IntakeBody } from "../store/port/intake-bodies.ts";

/** The senders of large bodies, who wait until their bodies are applied. */
export interface WaitingSenders {
  /** Waits for the end of a body that is stored. Nobody has to handle its rejection: the sender may have gone. */
  wait({ number, shop }: IntakeBody): Promise<void>;
  /** The numbers of the bodies that are waited for. */
  numbers(): ReadonlySet<number>;
  /**
   * Resolves for each body before its shop's oldest one: it was applied, or removed with its shop.
   * @param oldest the oldest complete body of each shop that has one
   * @param asked `numbers` when that was asked for: the answer may not know of a body that was stored since
   */
  note(oldest: readonly IntakeBody[], asked: ReadonlySet<number>): void;
  /** What resolves or rejects at the end of each body of a shop. */
  endsOf(shopId: number): Promise<void>[];
  /** Rejects for one body. */
  fail(number: number, thrown: unknown): void;
  /** Rejects for all. */
  failAll(thrown: unknown): void;
}

export function createWaitingSenders(): WaitingSenders {
  /** By the number of the body. */
  const waiting = new Map<number, { shopId: number; end: PromiseWithResolvers<void> }>();
  return {
    wait({ number, shop }) {
      const end = Promise.withResolvers<void>();
      end.promise.catch(() => undefined);
      waiting.set(number, { shopId: shop.id, end });
      return end.promise;
    },
    numbers: () => new Set(waiting.keys()),
    note(oldest, asked) {
      const oldestOf = new Map(oldest.map(({ number, shop }) => [shop.id, number]));
      for (const [number, { shopId, end }] of waiting) {
        if (!asked.has(number) || number >= (oldestOf.get(shopId) ?? Number.POSITIVE_INFINITY)) continue;
        waiting.delete(number);
        end.resolve();
      }
    },
    endsOf(shopId) {
      return [...waiting.values()].filter((each) => each.shopId === shopId).map(({ end }) => end.promise);
    },
    fail(number, thrown) {
      waiting.get(number)?.end.reject(thrown);
      waiting.delete(number);
    },
    failAll(thrown) {
      for (const { end } of waiting.values()) end.reject(thrown);
      waiting.clear();
    },
  };
}
