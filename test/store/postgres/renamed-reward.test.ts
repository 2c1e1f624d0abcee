import { expect, test } from "bun:test";
import { type CommitKeys, keysOf } from "../../../src/domain/decide/commit-keys.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { textSearches } from "../../../src/store/postgres/text-search.ts";
import { addShop, commit } from "../../conformance/fixtures.ts";
import { ADA, ada, redaction } from "../../conformance/redactions.ts";
import { openDatabase } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { openStoreAt } from "../../support/postgres-store.ts";
import { gid, reward } from "../../support/records.ts";

/** Makes a search read one text per slice. @param afterFirstSlice called once, after the first slice of rewards */
function inSmallSlices(db: Database, afterFirstSlice: () => Promise<unknown>): Database {
  let isOver = false;
  return {
    ...db,
    get: (text, parameters) =>
      db.get(text, text.includes("OFFSET $3") ? [...(parameters ?? []).slice(0, 2), 1] : parameters),
    async all(text, parameters) {
      const found = await db.all(text, parameters);
      if (text.includes("FROM occurrences") && !isOver) {
        isOver = true;
        await afterFirstSlice();
      }
      return found as never;
    },
  };
}

test.skipIf(!hasPostgres()).each([true, false])(
  "a search finds a reward that another redaction renames to a key that was searched; its person is mirrored: %p",
  async (isMirrored) => {
    const url = await emptyDatabase();
    const store = await openStoreAt(url);
    const db = openDatabase(url);
    const shop = await addShop(store);
    const both = { customer: gid.customer(2), referred: gid.customer(1), contact: ADA, friend: "Grace" };
    // Redacted ids begin with "redacted", so they sort before `y` and `yy`.
    const others = ["y", "yy"].map((id) => reward(id, { customer: gid.customer(3) }));
    await commit(store, shop, [...(isMirrored ? [ada] : []), ...others, reward(`z-${ADA}`, both)]);
    const first = { ...redaction, contacts: { email: ADA } };
    const searches = textSearches(inSmallSlices(db, () => commit(store, shop, [first])));
    const search = await searches.search(shop, new Set([gid.customer(2)]));
    const [keys] = keysOf([{ shop, records: [{ ...redaction, shopifyId: gid.customer(2) }] }]);
    const found = await db.transaction((tx) => searches.read(tx, keys as CommitKeys, [search]));
    expect(found).toMatchObject([{ place: "reward", text: expect.stringContaining("Grace") }]);
    expect(JSON.stringify(found)).not.toContain(ADA);
  },
);
