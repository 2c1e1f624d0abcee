import { nextTurn } from "./waits.ts";

interface Submitted<I, O> {
  item: I;
  resolve(result: O): void;
  reject(thrown: unknown): void;
}

export interface GroupCommitOptions<I, O> {
  /** Commits items in their order. Resolves to a result for each item. */
  commit(items: I[]): Promise<O[]>;
  sizeOf(item: I): number;
  /** Maximum size of a commit. A larger commit would delay its items by more time than it saves in disk syncs. */
  maxSize: number;
  /** Whether every item would fail with this error, as on a full disk. If not, each item is committed alone. */
  failsAll(thrown: unknown): boolean;
  /** Lets other commits run while one commit waits for a lock. Without `overtaking`, one commit runs at a time. */
  overtaking?: Overtaking<I>;
}

export interface Overtaking<I> {
  /** Other commits may overtake a commit that takes longer than this many milliseconds. */
  afterMs: number;
  /** Returns an item's key. Items with the same key may need the same lock, so they keep their order. */
  keyOf(item: I): unknown;
}

/** A commit that takes longer than this probably waits for a lock. Normal commits take a few milliseconds. */
export const OVERTAKEN_AFTER_MS = 100;

/** Maximum number of running commits. Commits that wait for locks must not take all connections to a database. */
const MAX_COMMITS = 4;

/** Lets items that are submitted at the same time share a commit, because each commit costs one disk sync. */
export interface GroupCommit<I, O> {
  /** Commits an item. Resolves after the commit. Rejects if the commit failed; then no part of the item was kept. */
  submit(item: I): Promise<O>;
  /** Waits until every submitted item is committed or refused. May be called twice. */
  drain(): Promise<void>;
}

export function createGroupCommit<I, O>(options: GroupCommitOptions<I, O>): GroupCommit<I, O> {
  const { overtaking } = options;
  const queue: Submitted<I, O>[] = [];
  /** The running commits, each with the keys of its items. */
  const commits = new Map<Promise<void>, ReadonlySet<unknown>>();
  /** Resolves when the next item is submitted. */
  let arrival = Promise.withResolvers<void>();
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    await untilQuiet(queue);
    while (queue.length > 0) {
      const group = commits.size < MAX_COMMITS ? takeGroup(queue, commits.values(), options) : [];
      if (group.length > 0) await untilEndedOrSlow(group);
      else await Promise.race([...commits.keys(), arrival.promise]);
      await untilQuiet(queue);
    }
    running = undefined;
  }

  /** Commits a group. Waits until the commit ends, or until other commits may overtake it. */
  async function untilEndedOrSlow(group: Submitted<I, O>[]): Promise<void> {
    const keys = new Set(overtaking === undefined ? [] : group.map(({ item }) => overtaking.keyOf(item)));
    const ended = commitGroup(group, options).finally(() => commits.delete(ended));
    commits.set(ended, keys);
    if (overtaking === undefined) return ended;
    const slow = Promise.withResolvers<void>();
    const timer = setTimeout(slow.resolve, overtaking.afterMs);
    await Promise.race([ended, slow.promise]);
    clearTimeout(timer);
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

/**
 * Waits until two turns of the event loop in a row bring no new item. Requests that arrive together are submitted a few
 * turns apart. With one quiet turn instead of two, a load of contracts took a sixth more commits.
 */
async function untilQuiet(queue: readonly unknown[]): Promise<void> {
  let quietTurns = 0;
  while (quietTurns < 2) {
    const before = queue.length;
    await nextTurn();
    quietTurns = queue.length > before ? 0 : quietTurns + 1;
  }
}

/**
 * Takes the items of the next commit from the queue, in their order.
 * @param keysInUse the keys of the running commits: items with these keys wait
 */
function takeGroup<I, O>(
  queue: Submitted<I, O>[],
  keysInUse: Iterable<ReadonlySet<unknown>>,
  { sizeOf, maxSize, overtaking }: GroupCommitOptions<I, O>,
): Submitted<I, O>[] {
  const locked = new Set([...keysInUse].flatMap((keys) => [...keys]));
  const group: Submitted<I, O>[] = [];
  const kept: Submitted<I, O>[] = [];
  let size = 0;
  for (const submitted of queue) {
    if (locked.size > 0 && locked.has(overtaking?.keyOf(submitted.item))) {
      kept.push(submitted);
      continue;
    }
    size += sizeOf(submitted.item);
    if (group.length > 0 && size > maxSize) break;
    group.push(submitted);
  }
  queue.splice(0, group.length + kept.length, ...kept);
  return group;
}

/** Settles every item of the group. Never rejects. */
async function commitGroup<I, O>(group: Submitted<I, O>[], options: GroupCommitOptions<I, O>): Promise<void> {
  try {
    const results = await options.commit(group.map(({ item }) => item));
    for (const [index, { resolve }] of group.entries()) resolve(results[index] as O);
  } catch (thrown) {
    if (group.length === 1 || options.failsAll(thrown)) for (const { reject } of group) reject(thrown);
    else for (const each of group) await commitGroup([each], options);
  }
}
