import type { Applied, MirrorStore, Submission } from "../store/mirror.ts";

/** Records in one commit: past this a commit costs more in waiting than it saves in syncs. */
const MAX_RECORDS = 2_000;

interface Waiting {
  submission: Submission;
  resolve(applied: Applied): void;
  reject(thrown: unknown): void;
}

/**
 * The one door into the mirror, whoever brings the change: intake, platform webhook or import. A commit costs a sync of the disk however
 * much is in it, so submissions that wait at the same time share one.
 */
export class Door {
  private readonly store: MirrorStore;
  private readonly now: () => number;
  private readonly onQueued: () => void;
  private readonly waiting: Waiting[] = [];
  private running: Promise<void> | undefined;

  /** @param onQueued is called after a commit that queued deliveries */
  constructor(store: MirrorStore, now: () => number, onQueued: () => void = () => {}) {
    this.store = store;
    this.now = now;
    this.onQueued = onQueued;
  }

  /** Resolves after the commit; rejects, with nothing kept, if it failed. */
  submit(submission: Submission): Promise<Applied> {
    const { promise, resolve, reject } = Promise.withResolvers<Applied>();
    this.waiting.push({ submission, resolve, reject });
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
      await this.commit(this.takeGroup());
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

  private takeGroup(): Waiting[] {
    let records = 0;
    const end = this.waiting.findIndex(({ submission }, index) => {
      records += submission.records.length;
      return index > 0 && records > MAX_RECORDS;
    });
    return this.waiting.splice(0, end === -1 ? this.waiting.length : end);
  }

  private async commit(group: Waiting[]): Promise<void> {
    try {
      const results = await this.store.applyRecords(
        group.map(({ submission }) => submission),
        this.now(),
      );
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Applied);
      if (results.some((applied) => "events" in applied && applied.events > 0)) this.onQueued();
    } catch (thrown) {
      for (const { reject } of group) reject(thrown);
    }
  }
}
