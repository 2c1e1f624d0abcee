import { describe, expect, test } from "bun:test";
import type { MirrorRecord } from "../../../src/domain/records/platform-records.ts";
import { partitionOf } from "../../../src/domain/shop.ts";
import { createRecordWriter } from "../../../src/mirror/record-writer.ts";
import { engines } from "../../conformance/engines.ts";
import { addShop } from "../../conformance/fixtures.ts";
import { START } from "../../support/app.ts";
import { customer } from "../../support/records.ts";

const shared = engines().filter(({ name }) => name === "postgres");

describe.each(shared)("$name: the work of a node", (engine) => {
  /** Two nodes. The first one owns the shop's work. */
  async function setUp() {
    const { store, reopen, rows } = await engine.open();
    const other = await reopen();
    const shop = await addShop(store);
    const take = (by: typeof store, leaseMs: number) =>
      by.nodes?.lease({ wanted: [partitionOf(shop.id)], held: [], released: [] }, leaseMs);
    // The lease expires at once, but no other node takes over.
    await take(store, -1);
    const work = (n: number) => ({ shop, records: [customer(n)] as MirrorRecord[], isNodeWork: true });
    return { store, other, shop, take, work, count: async () => (await rows("customers")).length };
  }

  test("is stored until another node takes it over, and then refused", async () => {
    const { store, other, take, work, count } = await setUp();
    const both = await store.mirror.applyRecords([work(1), work(3)], START, []);
    expect(both).toMatchObject([{ changed: 1 }, { changed: 1 }]);
    await take(other, 60_000);
    const late = store.mirror.applyRecords([work(2)], START, []);
    expect(late).rejects.toMatchObject({ name: "StoreError", reason: "conflict" });
    expect(await late.catch((thrown: Error) => thrown.message)).toContain("another node has taken over the work");
    expect(await count()).toBe(2);
    expect(await other.mirror.applyRecords([work(2)], START, [])).toMatchObject([{ changed: 1 }]);
  });

  test("is refused alone: posted records in the same commit are stored", async () => {
    const { store, other, shop, take, work, count } = await setUp();
    await take(other, 60_000);
    const writer = createRecordWriter(store.mirror, () => START);
    const results = await Promise.allSettled([
      writer.submit({ shop, records: [customer(1)] }),
      writer.submit(work(2)),
      writer.submit({ shop, records: [customer(3)] }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await count()).toBe(2);
  });
});
