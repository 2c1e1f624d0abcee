import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Submission } from "../../src/domain/decide/commit.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { mirrorRecord } from "../support/arbitrary-records.ts";
import { cleanUp } from "../support/cleanup.ts";
import { MemoryMirror } from "../support/memory-mirror.ts";
import { applySearched } from "../support/searched.ts";
import { engines, type TestStore } from "./engines.ts";
import { addShop, chooseAllEvents, receipt, receiveAll } from "./fixtures.ts";

/** Waiting platform webhooks. One names customer 1 by number; the other contains the digit 1, but not the customer. */
const INBOX = [
  '{"customer":{"id":1,"email":"ada@example.com"}}',
  '{"customer":{"id":2,"email":"grace@example.com"},"count":11}',
];

/** The records of each submission. */
const submissions = fc.array(fc.array(mirrorRecord, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 12 });
/** The number of submissions in each commit. */
const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 12, maxLength: 12 });

function inGroups<T>(items: readonly T[], groupSizes: readonly number[]): T[][] {
  const groups: T[][] = [];
  for (let at = 0; at < items.length; at += groups.at(-1)?.length ?? 0)
    groups.push(items.slice(at, at + (groupSizes[groups.length] ?? 1)));
  return groups;
}

async function shopWithInbox(store: Store): Promise<{ shop: MirroredShop; inboxNumbers: number[] }> {
  const shop = await addShop(store);
  await chooseAllEvents(store, shop);
  await receiveAll(
    store,
    INBOX.map((body) => receipt(shop, null, { body })),
  );
  const items = await store.inbox.list(shop.id, { limit: 10 });
  return { shop, inboxNumbers: items.map(({ number }) => number).sort((a, b) => a - b) };
}

/**
 * Reads the final mirror. Leaves out delivery ids, which are random. Leaves out change numbers, which depend on the
 * grouping.
 */
async function contents({ store, rows }: TestStore, shop: MirroredShop) {
  const without = (row: Record<string, unknown>) => ({ ...row, change_number: null, redacted_after: null });
  const mirror = await Promise.all(
    (["customers", "subscriptions", "orders", "occurrences", "inbox"] as const).map(rows),
  );
  const deliveries = (await rows("deliveries")).map((row) => ({
    ...row,
    id: "",
    body: String(row["body"]).replace(String(row["id"]), "whd_"),
  }));
  return {
    mirror: mirror.map((table) => table.map(without)),
    deliveries,
    counts: await store.shops.rowCounts(shop.id),
  };
}

describe.each(engines())("$name", (engine) => {
  test("any grouping of the same submissions into commits ends in the same rows, deliveries and texts", async () => {
    const property = fc.asyncProperty(submissions, sizes, async (lists, groupSizes) => {
      const [apart, together, memory] = [await engine.open(), await engine.open(), new MemoryMirror(INBOX)];
      const [inApart, inTogether] = [await shopWithInbox(apart.store), await shopWithInbox(together.store)];
      // The submission in the middle removes the second platform webhook from the inbox.
      const middle = Math.floor(lists.length / 2);
      const of = ({ shop, inboxNumbers }: { shop: MirroredShop; inboxNumbers: number[] }) =>
        lists.map(
          (records, index): Submission => ({
            shop,
            records,
            ...(index === middle && { inboxNumbers: inboxNumbers.slice(1) }),
          }),
        );

      const results = [];
      for (const submission of of(inApart))
        results.push(...(await applySearched(apart.store.mirror, [submission], START)));
      const groupedResults = [];
      for (const group of inGroups(of(inTogether), groupSizes))
        groupedResults.push(...(await applySearched(together.store.mirror, group, START)));
      expect(groupedResults).toEqual(results);
      expect(await contents(together, inTogether.shop)).toEqual(await contents(apart, inApart.shop));

      expect(
        of({ shop: memory.shop, inboxNumbers: [1, 2] }).flatMap((submission) => memory.commit([submission])),
      ).toEqual(results);
      expect(await served(apart)).toEqual(expectedOf(memory));
      // Each run has its own databases, so remove them now.
      await cleanUp();
    });
    // PostgreSQL has fewer runs, because making a database takes much longer there.
    await fc.assert(property, { numRuns: engine.name === "sqlite" ? 30 : 12 });
  });
});

async function served({ rows }: TestStore) {
  const jsonOf = async (table: "customers" | "subscriptions" | "orders" | "occurrences") =>
    (await rows(table)).map(({ json }) => String(json));
  return {
    rows: [
      ...(await jsonOf("customers")),
      ...(await jsonOf("subscriptions")),
      ...(await jsonOf("orders")),
      ...(await jsonOf("occurrences")),
    ].sort(),
    deliveries: (await rows("deliveries")).map(({ topic, body, id }) => ({
      topic,
      body: String(body).replace(String(id), "whd_"),
    })),
    inbox: (await rows("inbox")).map(({ body }) => body),
  };
}

function expectedOf(memory: MemoryMirror) {
  const { rows, deliveries, inbox } = memory.contents();
  return {
    rows: Object.values(rows)
      .map((row) => JSON.stringify(row.kind === "occurrence" ? row.record : row.resource))
      .sort(),
    deliveries: deliveries.map(({ topic, body }) => ({ topic, body })),
    inbox: Object.values(inbox),
  };
}
