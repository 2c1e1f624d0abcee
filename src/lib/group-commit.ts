import { codeOf } from "../domain/error.ts";

interface Waiting<I, O> {
  item: I;
  resolve(result: O): void;
  reject(thrown: unknown): void;
}

/** Lets what waits at the same time share a commit, which costs a sync of the disk however much is in it. */
export class GroupCommit<I, O> {
  private readonly commit: (items: I[]) => Promise<O[]>;
  private readonly sizeOf: (item: I) => number;
  private readonly maxSize: number;
  private readonly waiting: Waiting<I, O>[] = [];
  private running: Promise<void> | undefined;

  /**
   * @param commit takes items in their order, and resolves to a result for each
   * @param maxSize of what shares a commit: past some size it costs more in waiting than it saves in syncs
   */
  constructor(commit: (items: I[]) => Promise<O[]>, sizeOf: (item: I) => number, maxSize: number) {
    this.commit = commit;
    this.sizeOf = sizeOf;
    this.maxSize = maxSize;
  }

  /** Resolves after the commit; rejects, with nothing kept, if it failed. */
  submit(item: I): Promise<O> {
    const { promise, resolve, reject } = Promise.withResolvers<O>();
    this.waiting.push({ item, resolve, reject });
    this.running ??= this.run();
    return promise;
  }

  /** Waits for what was submitted. May be called twice. */
  async drain(): Promise<void> {
    await this.running;
  }

  private async run(): Promise<void> {
    await this.gather();
    while (this.waiting.length > 0) {
      await this.commitTogether(this.takeGroup());
      await this.gather();
    }
    this.running = undefined;
  }

  /** Requests that arrived together come here a few turns of the event loop apart: waits until a turn brings no more. */
  private async gather(): Promise<void> {
    let seen: number;
    do {
      seen = this.waiting.length;
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.waiting.length > seen);
  }

  private takeGroup(): Waiting<I, O>[] {
    let size = 0;
    const end = this.waiting.findIndex(({ item }, index) => {
      size += this.sizeOf(item);
      return index > 0 && size > this.maxSize;
    });
    return this.waiting.splice(0, end === -1 ? this.waiting.length : end);
  }

  private async commitTogether(group: Waiting<I, O>[]): Promise<void> {
    try {
      const results = await this.commit(group.map(({ item }) => item));
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as O);
    } catch (thrown) {
      // Where it is not the database that failed, it is one of them: that one must not fail the others.
      if (group.length > 1 && !codeOf(thrown).startsWith("SQLITE_")) for (const each of group) await this.commitTogether([each]);
      else for (const { reject } of group) reject(thrown);
    }
  }
}
