import type { CommitKeys } from "../../domain/decide/commit-keys.ts";
import type { TextSearch } from "../port/mirror.ts";

/**
 * Returns a shop's searches for the people whom a commit redacts.
 * @throws Error if a search is missing, because the commit would leave texts about that person
 */
export function searchesOf({ shop, redactedPeople }: CommitKeys, searches: readonly TextSearch[]): TextSearch[] {
  const own = searches.filter((search) => search.shop.id === shop.id);
  const searched = new Set(own.flatMap(({ people }) => [...people]));
  if (redactedPeople.isSubsetOf(searched)) return own;
  throw new Error("a commit redacts a person whose texts were not searched");
}
