import type { MirroredShop } from "../domain/shop.ts";
import { createGroupCommit, type GroupCommit } from "../lib/group-commit.ts";
import { createSlots } from "../lib/slots.ts";
import type { MirrorStore, TextSearch } from "../store/port/mirror.ts";

/**
 * Maximum number of shops that are searched at once. A running search takes about a millisecond of each turn of the
 * event loop.
 */
const MAX_SEARCHES = 4;
/** Maximum number of people in one search. A commit has room for the same number of redactions. */
const PEOPLE_PER_SEARCH = 10;

/** A search that several redactions use. The last user ends the search. */
interface SharedSearch {
  search: TextSearch;
  users: number;
}

/** The searches of one shop, and the number of redactions that use them. */
interface ShopQueue {
  searches: GroupCommit<ReadonlySet<string>, SharedSearch>;
  users: number;
}

/**
 * Creates the searches for stored texts about redacted people. A search runs before its redactions are committed, so
 * other commits do not wait for the search.
 */
export function createRedactionSearches(
  store: Pick<MirrorStore, "searchTexts">,
  failsAll: (thrown: unknown) => boolean,
) {
  const slots = createSlots(MAX_SEARCHES);
  const queues = new Map<number, ShopQueue>();

  function createQueue(shop: MirroredShop): ShopQueue {
    const searches = createGroupCommit<ReadonlySet<string>, SharedSearch>({
      async commit(all) {
        const people = new Set(all.flatMap((each) => [...each]));
        const search = await slots.run(() => store.searchTexts(shop, people));
        const shared = { search, users: all.length };
        return all.map(() => shared);
      },
      sizeOf: ({ size }) => size,
      maxSize: PEOPLE_PER_SEARCH,
      failsAll,
    });
    return { searches, users: 0 };
  }

  return {
    /**
     * Searches for the people, and then calls `use` with the result. Waiting redactions of a shop share a search. A
     * search for many people takes as long as a search for one person. Redactions of a shop keep their order.
     */
    async withSearch<T>(
      shop: MirroredShop,
      people: ReadonlySet<string>,
      use: (search: TextSearch) => Promise<T>,
    ): Promise<T> {
      const queue = queues.get(shop.id) ?? createQueue(shop);
      queues.set(shop.id, queue);
      queue.users += 1;
      try {
        const shared = await queue.searches.submit(people);
        try {
          return await use(shared.search);
        } finally {
          shared.users -= 1;
          if (shared.users === 0) shared.search.end();
        }
      } finally {
        queue.users -= 1;
        if (queue.users === 0) queues.delete(shop.id);
      }
    },
  };
}
