import type { CommitResult, Submission } from "../domain/commit.ts";
import { createGroupCommit } from "../lib/group-commit.ts";
import type { MirrorStore } from "../store/mirror.ts";
import { StoreError } from "../store/store-error.ts";

/** Records in one commit. */
const MAX_RECORDS = 2_000;
/** A redaction counts as many records, because it changes every stored text about a person. */
const REDACTION_SIZE = 80;

/** The only way to write to the mirror, for intake, platform and import. */
export interface RecordWriter {
  /** Resolves after the commit. Rejects if it failed; then nothing of the submission was kept. */
  submit(submission: Submission): Promise<CommitResult>;
  /** Waits for what was submitted. May be called twice. */
  drain(): Promise<void>;
}

/**
 * Submissions that arrive at the same time share a commit.
 * @param onQueued is called after a commit that queued deliveries
 */
export function createRecordWriter(
  store: Pick<MirrorStore, "applyRecords">,
  now: () => number,
  onQueued: () => void = () => {},
): RecordWriter {
  return createGroupCommit<Submission, CommitResult>({
    async commit(submissions) {
      const results = await store.applyRecords(submissions, now());
      if (results.some((result) => "events" in result && result.events > 0)) onQueued();
      return results;
    },
    sizeOf: ({ records }) => records.reduce((sum, { type }) => sum + (type === "redaction" ? REDACTION_SIZE : 1), 0),
    maxSize: MAX_RECORDS,
    failsAll: (thrown) => thrown instanceof StoreError && thrown.reason !== "conflict",
  });
}
