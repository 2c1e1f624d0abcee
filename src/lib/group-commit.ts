import { nextTurn } from "./turns.ts";

interface Submitted<I, O> {
  item: I;
  resolve(result: O): void;
  reject(thrown: unknown): void;
}

export interface GroupCommitOptions<I, O> {
  /** Commits items in their order, and resolves to a result for each. */
  commit(items: I[]): Promise<O[]>;
  sizeOf(item: I): number;
  /** The largest size of a commit. In a larger one, waiting costs more than the saved disk syncs. */
  maxSize: number;
  /**
   * Whether an error has nothing to do with the items, so that all of them fail. If not, the items are committed one by
   * one, so that a bad one fails alone.
   */
  failsAll(thrown: unknown): boolean;
  /** Lets others go on while a commit waits for somebody else's lock. Without it, commits follow each other. */
  overtaking?: Overtaking<I>;
}

export interface Overtaking<I> {
  /** A commit that takes longer is overtaken, milliseconds. */
  afterMs: number;
  /** What may be locked. Items with the same key keep their order. */
  keyOf(item: I): unknown;
}

/** For commits that may wait for somebody else's lock. Most take a few milliseconds. */
export const OVERTAKEN_AFTER_MS = 100;

/** Commits at once, so that locks on a few keys do not take all connections to a database. */
const MAX_COMMITS = 4;

/**
 * Lets items that are submitted at the same time share a commit: each commit costs one sync of the disk, whatever its
 * size.
 */
export interface GroupCommit<I, O> {
  /** Resolves after the commit. Rejects if it failed; then nothing of the item was kept. */
  submit(item: I): Promise<O>;
  /** Waits for what was submitted. May be called twice. */
  drain(): Promise<void>;
}

export function createGroupCommit<I, O>({
  commit,
  sizeOf,
  maxSize,
  failsAll,
  overtaking,
}: GroupCommitOptions<I, O>): GroupCommit<I, O> {
  const queue: Submitted<I, O>[] = [];
  /** The commits that run, each with the keys of its items. */
  const commits = new Map<Promise<void>, ReadonlySet<unknown>>();
  /** Resolves with the next item. */
  let arrival = Promise.withResolvers<void>();
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    await gather();
    while (queue.length > 0) {
      const group = commits.size < MAX_COMMITS ? takeGroup() : [];
      if (group.length > 0) await untilEndedOrSlow(group);
      else await Promise.race([...commits.keys(), arrival.promise]);
      await gather();
    }
    running = undefined;
  }

  /** Commits a group, and waits for it as long as it may hold up others. */
  async function untilEndedOrSlow(group: Submitted<I, O>[]): Promise<void> {
    const keys = new Set(overtaking === undefined ? [] : group.map(({ item }) => overtaking.keyOf(item)));
    const ended = commitGroup(group).finally(() => commits.delete(ended));
    commits.set(ended, keys);
    if (overtaking === undefined) return ended;
    const slow = Promise.withResolvers<void>();
    const timer = setTimeout(slow.resolve, overtaking.afterMs);
    await Promise.race([ended, slow.promise]);
    clearTimeout(timer);
  }

  /**
   * Waits until two turns of the event loop in a row bring no new item. Requests that arrive together are submitted a
   * few turns apart. With one quiet turn, a load of contracts took a sixth more commits.
   */
  async function gather(): Promise<void> {
    let quietTurns = 0;
    while (quietTurns < 2) {
      const before = queue.length;
      await nextTurn();
      quietTurns = queue.length > before ? 0 : quietTurns + 1;
    }
  }

  /** The first items that may be committed now, as many as one commit takes. */
  function takeGroup(): Submitted<I, O>[] {
    const locked = [...commits.values()].reduce((all, keys) => all.union(keys), new Set<unknown>());
    const isLocked = (item: I) => locked.size > 0 && locked.has(overtaking?.keyOf(item));
    const group: Submitted<I, O>[] = [];
    const kept: Submitted<I, O>[] = [];
    let size = 0;
    let index = 0;
    for (; index < queue.length; index += 1) {
      const submitted = queue[index] as Submitted<I, O>;
      if (isLocked(submitted.item)) {
        kept.push(submitted);
        continue;
      }
      size += sizeOf(submitted.item);
      if (group.length > 0 && size > maxSize) break;
      group.push(submitted);
    }
    queue.splice(0, index, ...kept);
    return group;
  }

  async function commitGroup(group: Submitted<I, O>[]): Promise<void> {
    try {
      const results = await commit(group.map(({ item }) => item));
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as O);
    } catch (thrown) {
      if (group.length === 1 || failsAll(thrown)) for (const { reject } of group) reject(thrown);
      else for (const each of group) await commitGroup([each]);
    }
  }

  return {
    submit(item) {
      const { promise, resolve, reject } = Promise.withResolvers<O>();
      queue.push({ item, resolve, reject });
      arrival.resolve();
      arrival = Promise.withResolvers();
      running ??= run();
      return promise;
    },
    async drain() {
      await running;
      await Promise.all(commits.keys());
    },
  };
}
