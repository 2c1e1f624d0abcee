import { GroupCommit } from "../lib/group-commit.ts";
import type { CommitResult, MirrorStore, Submission } from "../store/sqlite/mirror.ts";

/** Records in one commit. */
const MAX_RECORDS = 2_000;

/** The one way into the mirror, whoever brings the change: intake, platform or import. What waits at the same time shares a commit. */
export class RecordWriter {
  private readonly group: GroupCommit<Submission, CommitResult>;

  /** @param onQueued is called after a commit that queued deliveries */
  constructor(store: Pick<MirrorStore, "applyRecords">, now: () => number, onQueued: () => void = () => {}) {
    const commit = async (submissions: Submission[]) => {
      const results = await store.applyRecords(submissions, now());
      if (results.some((applied) => "events" in applied && applied.events > 0)) onQueued();
      return results;
    };
    this.group = new GroupCommit(commit, ({ records }) => records.length, MAX_RECORDS);
  }

  /** Resolves after the commit; rejects, with nothing kept, if it failed. */
  submit(submission: Submission): Promise<CommitResult> {
    return this.group.submit(submission);
  }

  /** Waits for what was submitted. May be called twice. */
  drain(): Promise<void> {
    return this.group.drain();
  }
}
