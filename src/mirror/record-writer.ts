import type { CommitResult, Submission } from "../domain/decide/commit.ts";
import type { MirrorRecord } from "../domain/records/platform-records.ts";
import { createGroupCommit, OVERTAKEN_AFTER_MS } from "../lib/group-commit.ts";
import type { MirrorStore, TextSearch } from "../store/port/mirror.ts";
import { StoreError } from "../store/port/store-error.ts";
import { createRedactionSearches } from "./redaction-searches.ts";

/** Records in one commit, each with its line items. They hold up everybody else for some 20 ms. */
const MAX_SIZE = 250;
/** Line items that take as long as a record without any. */
const LINES_PER_RECORD = 10;
/** A redaction counts as many records, because it changes every stored text about a person. */
const REDACTION_SIZE = 25;

/** The only way to write to the mirror, for intake, platform and import. */
export interface RecordWriter {
  /** Resolves after the commit. Rejects if it failed; then nothing of the submission was kept. */
  submit(submission: Submission): Promise<CommitResult>;
  /** Waits for what was submitted. May be called twice. */
  drain(): Promise<void>;
}

/** A submission that is ready for its commit. One with redactions has the search for their people. */
interface Ready {
  submission: Submission;
  search?: TextSearch;
}

/**
 * Submissions that arrive at the same time share a commit. A submission with a redaction enters it when the stored
 * texts were searched, because others must not wait for that.
 * @param onQueued is called after a commit that queued deliveries
 * @param isShared whether another node can lock a shop: then commits of other shops do not wait for it
 */
export function createRecordWriter(
  store: Pick<MirrorStore, "applyRecords" | "searchTexts">,
  now: () => number,
  onQueued: () => void = () => {},
  isShared = false,
): RecordWriter {
  const searches = createRedactionSearches(store, failsAll);
  /** Submissions with redactions that are under way. */
  const redacting = new Set<Promise<unknown>>();
  const commits = createGroupCommit<Ready, CommitResult>({
    async commit(group) {
      const found = new Set(group.flatMap(({ search }) => search ?? []));
      const submissions = group.map(({ submission }) => submission);
      const results = await store.applyRecords(submissions, now(), [...found]);
      if (results.some((result) => "events" in result && result.events > 0)) onQueued();
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
