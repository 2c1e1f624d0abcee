import type { KeyOwner } from "../../store/port/keys.ts";
import type { Bytes } from "../encoding.ts";

/** Maximum number of answers in each of the cache's two maps. */
const MAX_ANSWERS = 2_048;
/** Maximum length of a question in characters. If a question is longer, its answer is not cached. */
const LONGEST_QUESTION = 1_024;

/** A cached answer to a request of a shop. */
export interface CachedAnswer {
  /** The shop's change count when the answer was made. */
  changeCount: number;
  /** The shop's branch when the answer was made. */
  branch: string;
  tag: string;
  headers: Record<string, string>;
  /** `headers` in the form that Bun sends, made when the cached answer is sent for the first time. */
  sentHeaders?: Headers;
  /** undefined if the body is too large for the cache. Then the cache can only answer 304. */
  body: Bytes | undefined;
}

/**
 * Caches answers until the shop's data changes. Most readers of changes repeat the same request, and its answer is
 * small. A cached answer needs no read of the database.
 */
export interface AnswerCache {
  /**
   * @param shop the shop's current state
   * @param question everything that the answer depends on except the shop, such as path and query
   * @returns undefined if the answer is not cached, or if the shop has changed since the answer was made
   */
  find(shop: Pick<KeyOwner, "shopId" | "changeCount" | "branch">, question: string): CachedAnswer | undefined;
  keep(shopId: number, question: string, answer: CachedAnswer): void;
}

export function createAnswerCache(): AnswerCache {
  // When `newer` is full, it becomes `older`, and the previous `older` is dropped. Removing the oldest entry of a
  // single map would take 10 µs.
  let newer = new Map<string, CachedAnswer>();
  let older = new Map<string, CachedAnswer>();
  return {
    find({ shopId, changeCount, branch }, question) {
      const name = nameOf(shopId, question);
      const kept = newer.get(name) ?? older.get(name);
      return kept?.changeCount === changeCount && kept.branch === branch ? kept : undefined;
    },
    keep(shopId, question, answer) {
      if (question.length > LONGEST_QUESTION) return;
      if (newer.size >= MAX_ANSWERS) [older, newer] = [newer, new Map()];
      newer.set(nameOf(shopId, question), answer);
    },
  };
}

function nameOf(shopId: number, question: string): string {
  return `${shopId} ${question}`;
}
