import type { CommitResult, Submission } from "../../src/domain/decide/commit.ts";
import { keysOf } from "../../src/domain/decide/commit-keys.ts";
import type { MirrorStore, TextSearch } from "../../src/store/port/mirror.ts";

/** Searches for the people whom the submissions redact, and then applies the submissions, as the record writer does. */
export async function applySearched(
  mirror: MirrorStore,
  submissions: readonly Submission[],
  now: number,
): Promise<CommitResult[]> {
  const searches: TextSearch[] = [];
  try {
    for (const { shop, redactedPeople } of keysOf(submissions))
      if (redactedPeople.size > 0) searches.push(await mirror.searchTexts(shop, redactedPeople));
    return await mirror.applyRecords(submissions, now, searches);
  } finally {
    for (const search of searches) search.end();
  }
}
