import type { InboxQueue, InboxStore } from "../../store/inbox.ts";

/** How many due items of a queue are read at first. */
const FIRST_LIMIT = 500;
/** More are read, up to this many, if all items of a shorter read are about subjects under way. */
const LAST_LIMIT = 100_000;

/** What waits about one subject: the numbers of the items, the oldest first. */
interface SubjectItems {
  subject: string;
  numbers: number[];
}

export interface ReadAhead {
  /** Takes the next subject of a queue that is due and not under way; undefined if there is none. */
  take(queue: InboxQueue): Promise<SubjectItems | undefined>;
}

/** Reads due items of a queue in advance. One read for each subject would cost more than the processing. */
export function createReadAhead(
  inbox: Pick<InboxStore, "due">,
  isUnderWay: (shopId: number, subject: string) => boolean,
  now: () => number,
): ReadAhead {
  /** Numbers by subject, by queue. */
  const waiting = new Map<string, Map<string, number[]>>();

  async function read(queue: InboxQueue): Promise<Map<string, number[]>> {
    const at = now();
    for (let limit = FIRST_LIMIT; limit <= LAST_LIMIT; limit *= 10) {
      const due = await inbox.due(queue, at, limit);
      const startable = due.filter(({ subject }) => !isUnderWay(queue.shopId, subject));
      if (startable.length > 0 || due.length < limit) return numbersBySubject(startable);
    }
    return new Map();
  }

  return {
    async take(queue) {
      const name = `${queue.shopId} ${queue.needsPlatform}`;
      const known = waiting.get(name) ?? (await read(queue));
      const next = [...known].find(([subject]) => !isUnderWay(queue.shopId, subject));
      if (next !== undefined) known.delete(next[0]);
      if (known.size === 0) waiting.delete(name);
      else waiting.set(name, known);
      return next === undefined ? undefined : { subject: next[0], numbers: next[1] };
    },
  };
}

function numbersBySubject(items: readonly { subject: string; number: number }[]): Map<string, number[]> {
  const groups = Map.groupBy(items, ({ subject }) => subject);
  return new Map([...groups].map(([subject, group]) => [subject, group.map(({ number }) => number)]));
}
