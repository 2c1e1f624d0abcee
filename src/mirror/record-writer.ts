import type { CommitResult, Submission } from "../domain/commit.ts";
import type { MirrorRecord } from "../domain/platform-records.ts";
import { createGroupCommit } from "../lib/group-commit.ts";
import type { MirrorStore } from "../store/mirror.ts";
import { StoreError } from "../store/store-error.ts";

/** Records in one commit, each with its line items. They hold up everybody else for some 20 ms. */
const MAX_SIZE = 250;
/** Line items that take as long as a record without any. */
const LINES_PER_RECORD = 10;
/** A redaction counts as many records, because it changes every stored text about a person. */
const REDACTION_SIZE = 10;

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
    sizeOf: ({ records }) => records.reduce((sum, record) => sum + sizeOf(record), 0),
    maxSize: MAX_SIZE,
    failsAll: (thrown) => thrown instanceof StoreError && thrown.reason !== "conflict",
  });
}

function sizeOf(record: MirrorRecord): number {
  if (record.type === "subscription" || record.type === "order") return 1 + record.lines.length / LINES_PER_RECORD;
  return record.type === "redaction" ? REDACTION_SIZE : 1;
}
