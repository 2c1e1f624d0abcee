import type { KeyOwner } from "../../store/port/keys.ts";
import type { Bytes } from "../encoding.ts";

/** Maximum number of answers in each of the cache's two maps. */
const MAX_ANSWERS = 2_048;
/** Maximum length of a question in characters. Answers to longer questions are not kept. */
const LONGEST_QUESTION = 1_024;

/** A remembered answer to a request of a shop. */
export interface CachedAnswer {
  /** The number of the shop's last change when the answer was made. */
  changeCount: number;
  /** The shop's branch when the answer was made. */
  branch: string;
  tag: string;
  headers: Record<string, string>;
  /** `headers` in the form that Bun sends, made when the kept answer is sent for the first time. */
  sentHeaders?: Headers;
  /** undefined for a large body. Such bodies are not kept, so the cache can then only answer 304. */
  body: Bytes | undefined;
}

/**
 * Keeps answers until data of the shop changes. Most readers of changes ask for the same small answer again and again.
 * A kept answer needs no read of the database.
 */
export interface AnswerCache {
  /**
   * @param shop the shop's current state
   * @param question everything that the answer depends on except the shop, such as path and query
   * @returns undefined if the answer is not kept, or the shop has changed since
   */
  find(shop: Pick<KeyOwner, "shopId" | "changeCount" | "branch">, question: string): CachedAnswer | undefined;
  keep(shopId: number, question: string, answer: CachedAnswer): void;
}

export function createAnswerCache(): AnswerCache {
  // When `newer` is full, it becomes `older`, and the previous `older` is dropped. With one map, removing the oldest
  // entry would take 10 µs each time.
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
