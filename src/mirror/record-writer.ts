import type { CommitResult, Submission } from "../domain/decide/commit.ts";
import type { MirrorRecord } from "../domain/records/platform-records.ts";
import { createGroupCommit, OVERTAKEN_AFTER_MS } from "../lib/group-commit.ts";
import type { MirrorStore, TextSearch } from "../store/port/mirror.ts";
import { StoreError } from "../store/port/store-error.ts";
import { createRedactionSearches } from "./redaction-searches.ts";

/**
 * Maximum size of a commit, in records; line items add to the size. An intake body has the same limit. On SQLite, a
 * commit of this size blocks the program for 4 to 27 ms. The largest body, 1 MiB with line items, blocks it for 36 ms.
 */
const MAX_SIZE = 250;
/** This many line items count as one record. */
const LINES_PER_RECORD = 10;
/** A redaction counts as this many records, because it changes every stored text about a person. */
const REDACTION_SIZE = 25;

/** Writes records to the mirror. Intake, platform and import write only here. */
export interface RecordWriter {
  /** Resolves after the commit. Rejects if the commit failed; then nothing of the submission is kept. */
  submit(submission: Submission): Promise<CommitResult>;
  /** Waits until every submission has resolved or rejected. May be called twice. */
  drain(): Promise<void>;
}

/** Counts of a commit. */
export interface CommitCounts {
  records: number;
  events: number;
}

/** A queued submission. `search` is the finished search for the people whom the submission redacts. */
interface QueuedCommit {
  submission: Submission;
  search?: TextSearch;
}

/**
 * Creates a record writer. Submissions that arrive at the same time share a commit. A submission with a redaction first
 * waits for a search of the stored texts. Other submissions do not wait for that search.
 * @param onCommit called after each commit with the records that it applied and the events that it queued
 * @param isShared whether another node can lock a shop. If so, commits of other shops overtake a commit that waits for
 *   a lock
 */
export function createRecordWriter(
  store: Pick<MirrorStore, "applyRecords" | "searchTexts">,
  now: () => number,
  onCommit: (counts: CommitCounts) => void = () => {},
  isShared = false,
): RecordWriter {
  const searches = createRedactionSearches(store, failsAll);
  /** Unfinished submissions with a redaction. */
  const redacting = new Set<Promise<unknown>>();
  const commits = createGroupCommit<QueuedCommit, CommitResult>({
    async commit(group) {
      const found = new Set(group.flatMap(({ search }) => search ?? []));
      const submissions = group.map(({ submission }) => submission);
      const results = await store.applyRecords(submissions, now(), [...found]);
      onCommit(countsOf(results));
      return results;
    },
    sizeOf: ({ submission }) => submission.records.reduce((sum, record) => sum + sizeOf(record), 0),
    maxSize: MAX_SIZE,
    failsAll,
    ...(isShared && { overtaking: { afterMs: OVERTAKEN_AFTER_MS, keyOf: ({ submission }) => submission.shop.id } }),
  });

  async function redact(submission: Submission, people: ReadonlySet<string>): Promise<CommitResult> {
    const work = searches.withSearch(submission.shop, people, (search) => commits.submit({ submission, search }));
    redacting.add(work);
    try {
      return await work;
    } finally {
      redacting.delete(work);
    }
  }

  return {
    async submit(submission) {
      const people = redactedPeople(submission);
      return people.size === 0 ? commits.submit({ submission }) : redact(submission, people);
    },
    async drain() {
      await Promise.allSettled(redacting);
      await commits.drain();
    },
  };
}

/** Counts the records and events of the submissions that were not refused. */
function countsOf(results: readonly CommitResult[]): CommitCounts {
  const counts = { records: 0, events: 0 };
  for (const result of results) {
    if ("refused" in result) continue;
    counts.records += result.accepted;
    counts.events += result.events;
  }
  return counts;
}

function failsAll(thrown: unknown): boolean {
  return thrown instanceof StoreError && thrown.reason !== "conflict";
}

function redactedPeople({ records }: Submission): Set<string> {
  return new Set(records.flatMap((record) => (record.type === "redaction" ? [record.shopifyId] : [])));
}

function sizeOf(record: MirrorRecord): number {
  if (record.type === "subscription" || record.type === "order") return 1 + record.lines.length / LINES_PER_RECORD;
  return record.type === "redaction" ? REDACTION_SIZE : 1;
}
