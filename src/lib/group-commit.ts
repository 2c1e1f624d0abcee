import { nextTurn } from "./next-turn.ts";

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
}

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
}: GroupCommitOptions<I, O>): GroupCommit<I, O> {
  const queue: Submitted<I, O>[] = [];
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    await gather();
    while (queue.length > 0) {
      await commitGroup(takeGroup());
      await gather();
    }
    running = undefined;
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

  function takeGroup(): Submitted<I, O>[] {
    let size = 0;
    const end = queue.findIndex(({ item }, index) => {
      size += sizeOf(item);
      return index > 0 && size > maxSize;
    });
    return queue.splice(0, end === -1 ? queue.length : end);
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
      running ??= run();
      return promise;
    },
    async drain() {
      await running;
    },
  };
}
