import type { KeyOwner } from "../store/keys.ts";

/** Answers, in each of two generations. */
const MAX_ANSWERS = 2_048;
/** Characters of the path and the query. Answers to longer ones are not kept. */
const LONGEST_TARGET = 1_024;

type Bytes = Uint8Array<ArrayBuffer>;

/** What was answered to a request of a shop. */
export interface CachedAnswer {
  /** The number of the shop's last change. */
  changeCount: number;
  tag: string;
  headers: Record<string, string>;
  /** The same, made when the answer is first sent again. */
  made?: Headers;
  /** undefined if it is not kept: such an answer is only good for a client that has it (304). */
  body: Bytes | undefined;
}

/**
 * Remembers answers. One stays the same as long as nothing of the shop changes, so it is sent again without a read: to
 * a client that has it already, as 304, and where it is small, to every client. Most readers of changes ask for the
 * same small answer again and again, until something changes.
 */
export interface AnswerCache {
  /**
   * @param shop as it is now
   * @param target path and query
   * @returns undefined if the answer is not kept, or the shop has changed since
   */
  find(shop: Pick<KeyOwner, "shopId" | "changeCount">, target: string): CachedAnswer | undefined;
  keep(shopId: number, target: string, answer: CachedAnswer): void;
}

export function createAnswerCache(): AnswerCache {
  // When the newer one is full, it becomes the older one. Removing the oldest entry of a map takes 10 µs each time.
  let newer = new Map<string, CachedAnswer>();
  let older = new Map<string, CachedAnswer>();
  return {
    find({ shopId, changeCount }, target) {
      const name = nameOf(shopId, target);
      const kept = newer.get(name) ?? older.get(name);
      return kept?.changeCount === changeCount ? kept : undefined;
    },
    keep(shopId, target, answer) {
      if (target.length > LONGEST_TARGET) return;
      if (newer.size >= MAX_ANSWERS) [older, newer] = [newer, new Map()];
      newer.set(nameOf(shopId, target), answer);
    },
  };
}

function nameOf(shopId: number, target: string): string {
  return `${shopId} ${target}`;
}
