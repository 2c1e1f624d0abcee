import type { CommitKeys } from "../../domain/decide/commit-keys.ts";
import type { TextPlace } from "../../domain/people/redaction.ts";
import type { TextSearch } from "../port/mirror.ts";

export interface TextColumns {
  table: string;
  key: string;
  keyType: "text" | "bigint";
  text: string;
  /** SQL condition on the index columns between the shop and the key. */
  where: string;
}

/** The columns with texts that may contain personal data. */
export const TEXT_COLUMNS: Record<TextPlace, TextColumns> = {
  delivery: { table: "deliveries", key: "number", keyType: "bigint", text: "body", where: "kind = 'webhook'" },
  reward: { table: "occurrences", key: "id", keyType: "text", text: "json", where: "type = 'reward'" },
  inbox: { table: "inbox", key: "number", keyType: "bigint", text: "body", where: "true" },
};

/**
 * Returns a shop's searches for the people whom a commit redacts.
 * @throws Error if the search for a person is missing, because the commit would keep texts about the person
 */
export function searchesOf({ shop, redactedPeople }: CommitKeys, searches: readonly TextSearch[]): TextSearch[] {
  const own = searches.filter((search) => search.shop.id === shop.id);
  const searched = new Set(own.flatMap(({ people }) => [...people]));
  if (redactedPeople.isSubsetOf(searched)) return own;
  throw new Error("a commit redacts a person whose texts were not searched");
}
