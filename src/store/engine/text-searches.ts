import type { Submission } from "../../domain/decide/commit.ts";
import { keysOf } from "../../domain/decide/commit-keys.ts";
import type { ShopRef } from "../../domain/shop.ts";
import type { TextSearch } from "../port/mirror.ts";

/**
 * Calls `use` with searches for all redacted people. Reuses the given searches, and starts searches for the missing
 * people. Ends the started ones afterwards. Without a redaction it searches nothing.
 */
export async function withSearches<T>(
  submissions: readonly Submission[],
  given: readonly TextSearch[],
  search: (shop: ShopRef, people: ReadonlySet<string>) => Promise<TextSearch>,
  use: (searches: readonly TextSearch[]) => T | Promise<T>,
): Promise<T> {
  if (!submissions.some(hasRedaction)) return use([]);
  const added: TextSearch[] = [];
  try {
    for (const { shop, redactedPeople } of keysOf(submissions)) {
      const searched = given.filter((each) => each.shop.id === shop.id).flatMap(({ people }) => [...people]);
      const missing = redactedPeople.difference(new Set(searched));
      if (missing.size > 0) added.push(await search(shop, missing));
    }
    return await use([...given, ...added]);
  } finally {
    for (const each of added) each.end();
  }
}

function hasRedaction({ records }: Submission): boolean {
  return records.some(({ type }) => type === "redaction");
}
