import type { InboxQueue, InboxStore } from "../../store/port/inbox.ts";

/** How many due items of a queue are read at first. */
const FIRST_LIMIT = 500;
/** The limit grows up to this, while all items of a read are about subjects under way. */
const LAST_LIMIT = 100_000;

/** Reads due subjects of a queue in advance. One read for each subject would cost more than the processing. */
export function createReadAhead(
  inbox: Pick<InboxStore, "due">,
  isUnderWay: (shopId: number, subject: string) => boolean,
  now: () => number,
) {
  /** Subjects by queue. */
  const waiting = new Map<string, Set<string>>();

  async function read(queue: InboxQueue): Promise<Set<string>> {
    const at = now();
    for (let limit = FIRST_LIMIT; limit <= LAST_LIMIT; limit *= 10) {
      const due = await inbox.due(queue, at, limit);
      const subjects = new Set(due.map(({ subject }) => subject).filter((each) => !isUnderWay(queue.shopId, each)));
      if (subjects.size > 0 || due.length < limit) return subjects;
    }
    return new Set();
  }

  return {
    /** Takes the queue's next subject that is due and not under way; undefined without such a subject. */
    async take(queue: InboxQueue): Promise<string | undefined> {
      const name = `${queue.shopId} ${queue.needsPlatform}`;
      const known = waiting.get(name) ?? (await read(queue));
      const next = [...known].find((subject) => !isUnderWay(queue.shopId, subject));
      if (next !== undefined) known.delete(next);
      if (known.size === 0) waiting.delete(name);
      else waiting.set(name, known);
      return next;
    },
  };
}
