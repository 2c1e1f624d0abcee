import type { CommitKeys } from "../../domain/decide/commit-keys.ts";
import { redactedId } from "../../domain/ids.ts";
import { createTextSearch, type StoredText, TEXT_PLACES, type TextPlace } from "../../domain/people/redaction.ts";
import type { ShopRef } from "../../domain/shop.ts";
import type { TextSearch } from "../port/mirror.ts";
import { type Database, pipeline, type Queries } from "./database.ts";
import { endOfSlice, type TextKey, textsInRange, textsOf } from "./texts.ts";

/** What a search has to leave for the transaction: what was stored after it began. */
interface Seen {
  /** The highest numbers. A text that is stored later has a higher one. */
  delivery: number;
  inbox: number;
  /** The id of a later reward can be anywhere, but the number of its change is higher. */
  changes: number;
}

interface Found extends Seen {
  keys: Record<TextPlace, Set<TextKey>>;
}

/** The texts of one statement at most. A platform webhook can have megabytes. */
const TEXTS_PER_SLICE: Record<TextPlace, number> = { delivery: 5_000, reward: 5_000, inbox: 100 };

/**
 * Searches for the texts that may be about people, before the transaction that redacts them. It reads every text of the
 * shop once, because this is rarely needed; inside the transaction, others of the shop would wait for it.
 */
export function textSearches(db: Database) {
  const founds = new WeakMap<TextSearch, Found>();

  return {
    async search(shop: ShopRef, people: ReadonlySet<string>): Promise<TextSearch> {
      const found = await searchShop(db, shop, people);
      const search: TextSearch = { shop, people, end: () => founds.delete(search) };
      founds.set(search, found);
      return search;
    },

    /**
     * What the searches of a shop found, as it is now, and what was stored since. In the caller's transaction. All
     * statements are sent before this returns.
     */
    async read(
      tx: Queries,
      { shop, redactedPeople: people }: CommitKeys,
      searches: readonly TextSearch[],
    ): Promise<StoredText[]> {
      if (people.size === 0) return [];
      const own = searches.filter((search) => search.shop.id === shop.id);
      const found = own.flatMap((search) => founds.get(search) ?? []);
      if (found.length < own.length) throw new Error("the search of the texts has ended");
      const mentions = createTextSearch(shop.domain, people);
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

async function searchShop(db: Database, shop: ShopRef, people: ReadonlySet<string>): Promise<Found> {
  const keys: Found["keys"] = { delivery: new Set(), reward: new Set(), inbox: new Set() };
  const seen = await lookAtShop(db, shop);
  const mentions = createTextSearch(shop.domain, people);
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
 * Waits for whoever is adding texts. Then all that has these numbers or lower ones can be seen, and what is added later
 * gets higher ones: whoever adds a text locks the shop before it gets its number.
 */
function lookAtShop(db: Database, { id }: ShopRef): Promise<Seen> {
  return db.transaction(async (tx) => {
    const [, seen] = await pipeline([
      tx.run("SELECT 1 FROM shops WHERE id = $1::bigint FOR UPDATE", [id]),
      tx.get<Seen>(
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

function unseen(place: TextPlace, found: readonly Found[]) {
  const least = (numbers: number[]) => Math.min(...numbers);
  return place === "reward"
    ? { above: "", changedAfter: least(found.map(({ changes }) => changes)) }
    : { above: least(found.map((each) => each[place])) };
}

/** The keys that the texts can have now: another redaction may have given a reward another one. */
function keysNow(place: TextPlace, found: readonly Found[]): TextKey[] {
  const keys = [...new Set(found.flatMap((each) => [...each.keys[place]]))];
  return place === "reward" ? keys.flatMap((key) => [key, redactedId(String(key))]) : keys;
}
