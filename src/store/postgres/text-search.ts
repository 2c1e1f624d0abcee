import type { CommitKeys } from "../../domain/decide/commit-keys.ts";
import { redactedId } from "../../domain/ids.ts";
import { createTextSearch, type StoredText, TEXT_PLACES, type TextPlace } from "../../domain/people/redaction.ts";
import type { MirroredShop } from "../../domain/shop.ts";
import { searchesOf } from "../engine/text-searches.ts";
import type { TextSearch } from "../port/mirror.ts";
import { type Database, pipeline, type Queries } from "./database.ts";
import { endOfSlice, type TextKey, textsInRange, textsOf } from "./texts.ts";

/** The state of a shop when a search begins. Texts that are stored afterwards are searched by `read`. */
interface SearchSnapshot {
  /** The highest number of a delivery. Deliveries stored later have higher numbers. */
  delivery: number;
  /** The highest number of an inbox item. Items stored later have higher numbers. */
  inbox: number;
  /** The shop's change count. A reward stored later may have any id, but it has a higher change number. */
  changes: number;
}

interface TextHits extends SearchSnapshot {
  keys: Record<TextPlace, Set<TextKey>>;
}

/** Maximum number of texts in a statement. It is lower for the inbox, because a webhook may have megabytes. */
const TEXTS_PER_SLICE: Record<TextPlace, number> = { delivery: 5_000, reward: 5_000, inbox: 100 };

/**
 * Searches texts about people before the transaction that redacts these people. Inside that transaction, the search
 * would make other commits of the shop wait. Redactions are rare, so this reads every text of the shop and needs no
 * index.
 */
export function textSearches(db: Database) {
  const founds = new WeakMap<TextSearch, TextHits>();

  return {
    async search(shop: MirroredShop, people: ReadonlySet<string>): Promise<TextSearch> {
      const found = await searchShop(db, shop, people);
      const search: TextSearch = { shop, people, end: () => founds.delete(search) };
      founds.set(search, found);
      return search;
    },

    /**
     * Reads the texts to redact, in the caller's transaction. Returns the current versions of the texts that the
     * searches found, and newer texts that match. Sends all statements without waiting for answers.
     */
    async read(tx: Queries, keys: CommitKeys, searches: readonly TextSearch[]): Promise<StoredText[]> {
      const { shop, redactedPeople: people } = keys;
      if (people.size === 0) return [];
      const own = searchesOf(keys, searches);
      const found = own.flatMap((search) => founds.get(search) ?? []);
      if (found.length < own.length) throw new Error("the search of the texts has ended");
      const mentions = createTextSearch(shop.firstDomain, people);
      const texts = await pipeline(
        TEXT_PLACES.flatMap((place) => [
          textsInRange(tx, shop, place, people, unseen(place, found)),
          textsOf(tx, shop.id, place, keysNow(place, found)),
        ]),
      );
      const byKey = new Map(texts.flat().map((text) => [`${text.place} ${text.key}`, text]));
      return [...byKey.values()].filter(({ place, text }) => mentions(place, text));
    },
  };
}

async function searchShop(db: Database, shop: MirroredShop, people: ReadonlySet<string>): Promise<TextHits> {
  const keys: TextHits["keys"] = { delivery: new Set(), reward: new Set(), inbox: new Set() };
  const seen = await snapshotOf(db, shop);
  const mentions = createTextSearch(shop.firstDomain, people);
  for (const place of TEXT_PLACES) {
    let above: TextKey | undefined = place === "reward" ? "" : 0;
    while (above !== undefined) {
      const upTo: TextKey | undefined = await endOfSlice(db, shop.id, place, above, TEXTS_PER_SLICE[place]);
      const texts = await textsInRange(db, shop, place, people, { above, upTo });
      for (const { key, text } of texts) if (mentions(place, text)) keys[place].add(key);
      above = upTo;
    }
  }
  return { ...seen, keys };
}

/**
 * Reads the state at the start of a search. The lock waits for transactions that add texts, so all texts up to the
 * returned numbers are visible. Later texts get higher numbers, because a transaction locks the shop before it numbers
 * a text.
 */
function snapshotOf(db: Database, { id }: MirroredShop): Promise<SearchSnapshot> {
  return db.transaction(async (tx) => {
    const [, seen] = await pipeline([
      tx.run("SELECT 1 FROM shops WHERE id = $1::bigint FOR UPDATE", [id]),
      tx.get<SearchSnapshot>(
        `SELECT
           coalesce((SELECT max(number) FROM deliveries WHERE shop_id = $1::bigint), 0)::float8 AS delivery,
           coalesce((SELECT max(number) FROM inbox WHERE shop_id = $1::bigint), 0)::float8 AS inbox,
           coalesce((SELECT change_count FROM shop_changes WHERE shop_id = $1::bigint), 0)::float8 AS changes`,
        [id],
      ),
    ]);
    return seen ?? { delivery: 0, inbox: 0, changes: 0 };
  });
}

function unseen(place: TextPlace, found: readonly TextHits[]) {
  const least = (numbers: number[]) => Math.min(...numbers);
  return place === "reward"
    ? { above: "", changedAfter: least(found.map(({ changes }) => changes)) }
    : { above: least(found.map((each) => each[place])) };
}

/** Returns the possible current keys of found texts. A reward has two keys, because a redaction may have renamed it. */
function keysNow(place: TextPlace, found: readonly TextHits[]): TextKey[] {
  const keys = [...new Set(found.flatMap((each) => [...each.keys[place]]))];
  return place === "reward" ? keys.flatMap((key) => [key, redactedId(String(key))]) : keys;
}
