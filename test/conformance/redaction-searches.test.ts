import { describe, expect, test } from "bun:test";
import { START } from "../support/app.ts";
import { customer, gid, reward } from "../support/records.ts";
import { engines, storeWithEvents, storeWithTwoShops } from "./engines.ts";
import { commit, failures, receipt, shopWithEvents } from "./fixtures.ts";
import { ADA, ada, adaWebhook, receiveMany, redaction, tablesWith } from "./redactions.ts";

describe.each(engines())("$name: the search of a redaction", (engine) => {
  test("for many people in one commit redacts each, and yields to other work while it searches many texts", async () => {
    const opened = await storeWithEvents(engine);
    const { store, rows, shop } = opened;
    const people = Array.from({ length: 30 }, (_, n) => n + 1);
    await commit(
      store,
      shop,
      people.map((n) => customer(n, { email: `${n}@example.com` })),
    );
    for (let round = 0; round < 20; round += 1) {
      const rewards = Array.from({ length: 120 }, (_, n) =>
        reward(`r${round}-${n}`, { customer: gid.customer((n % 40) + 1), contact: `${(n % 40) + 1}@example.com` }),
      );
      await commit(store, shop, rewards);
    }
    const redactions = people.map((n) => ({ ...redaction, shopifyId: gid.customer(n) }));
    let isOver = false;
    let turns = 0;
    const redacting = commit(store, shop, redactions).finally(() => {
      isOver = true;
    });
    for (; !isOver; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    await redacting;
    expect(turns).toBeGreaterThan(5);
    const left = (await rows("occurrences")).map(({ json }) => JSON.parse(String(json)) as Record<string, string>);
    const holders = left.filter(({ contact }) => contact !== null).map(({ customer }) => customer);
    const others = Array.from({ length: 10 }, (_, n) => gid.customer(n + 31));
    expect(new Set(holders)).toEqual(new Set(others));
    expect(holders).toHaveLength(20 * 30);
  });

  test("in a shop with long texts yields to other work after few texts", async () => {
    const { store, shop } = await storeWithEvents(engine);
    for (let round = 0; round < 6; round += 1) {
      const rewards = Array.from({ length: 50 }, (_, n) => reward(`r${round}-${n}`, { text: "x".repeat(100_000) }));
      await commit(store, shop, rewards);
    }
    let isOver = false;
    let turns = 0;
    const searching = store.mirror.searchTexts(shop, new Set([gid.customer(2)])).finally(() => {
      isOver = true;
    });
    for (; !isOver; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    (await searching).end();
    expect(turns).toBeGreaterThan(10);
  });

  test.each(["this", "another"])("also redacts what %s process stores while it searches", async (which) => {
    const opened = await engine.open();
    const { store } = opened;
    const other = which === "this" ? store : await opened.reopen();
    const shop = await shopWithEvents(store);
    await commit(store, shop, [ada, reward("m", { customer: gid.customer(2) })]);
    await receiveMany(store, shop);
    const searching = store.mirror.searchTexts(shop, new Set([gid.customer(1)]));
    await store.inbox.receive([receipt(shop, "w1", { body: adaWebhook })], START);
    // The search has read reward `m`. The new rewards have ids before and after `m`.
    await commit(other, shop, [reward("a", { contact: ADA }), reward("z", { contact: ADA })]);
    expect(await tablesWith(opened, ADA)).toEqual(["customers", "deliveries", "inbox", "occurrences"]);
    const search = await searching;
    await store.mirror.applyRecords([{ shop, records: [redaction] }], START, [search]);
    search.end();
    expect(await tablesWith(opened, ADA)).toEqual([]);
  });

  test("of two commits at once redacts a text that names both people, although the first commit changes its key", async () => {
    const opened = await storeWithEvents(engine);
    const { store, shop } = opened;
    const both = { customer: gid.customer(2), referred: gid.customer(1), contact: ADA, friend: "Grace" };
    await commit(store, shop, [ada, customer(2, { firstName: "Grace" }), reward(`z-${ADA}`, both)]);
    await receiveMany(store, shop);
    const second = { ...redaction, shopifyId: gid.customer(2) };
    await Promise.all([commit(store, shop, [redaction]), commit(store, shop, [second])]);
    expect(await tablesWith(opened, ADA)).toEqual([]);
    expect(await tablesWith(opened, "Grace")).toEqual([]);
  });

  test.each(["this", "another"])("finds what %s process stored after its search", async (which) => {
    const opened = await engine.open();
    const { store } = opened;
    const other = which === "this" ? store : await opened.reopen();
    const shop = await shopWithEvents(store);
    await commit(store, shop, [ada, reward("m", { contact: ADA })]);
    const search = await store.mirror.searchTexts(shop, new Set([gid.customer(1)]));
    await other.inbox.receive([receipt(shop, "w1", { body: adaWebhook })], START);
    // The search has read reward `m`. The new rewards have ids before and after `m`.
    await commit(other, shop, [reward("a", { contact: ADA }), reward("z", { contact: ADA })]);
    await store.mirror.applyRecords([{ shop, records: [redaction] }], START, [search]);
    search.end();
    expect(await tablesWith(opened, ADA)).toEqual([]);
    expect(await opened.rows("occurrences")).toHaveLength(3);
  });

  test("finds a reward whose id another redaction changed after its search", async () => {
    const opened = await storeWithEvents(engine);
    const { store, shop } = opened;
    const second = { ...redaction, shopifyId: gid.customer(2) };
    const both = { customer: gid.customer(2), referred: gid.customer(1), contact: ADA, friend: "Grace" };
    await commit(store, shop, [ada, customer(2, { firstName: "Grace" }), reward(`z-${ADA}`, both)]);
    const search = await store.mirror.searchTexts(shop, new Set([gid.customer(1), gid.customer(2)]));
    await store.mirror.applyRecords([{ shop, records: [redaction] }], START, [search]);
    await store.mirror.applyRecords([{ shop, records: [second] }], START, [search]);
    search.end();
    expect([await tablesWith(opened, ADA), await tablesWith(opened, "Grace")]).toEqual([[], []]);
  });

  test("redacts a text that names people of two searches", async () => {
    const opened = await storeWithEvents(engine);
    const { store, shop } = opened;
    await commit(store, shop, [ada, customer(2, { firstName: "Grace" })]);
    await commit(store, shop, [
      reward("r", { customer: gid.customer(2), referred: gid.customer(1), to: [ADA, "Grace"] }),
    ]);
    const searches = [];
    for (const n of [1, 2]) searches.push(await store.mirror.searchTexts(shop, new Set([gid.customer(n)])));
    const records = [redaction, { ...redaction, shopifyId: gid.customer(2) }];
    await store.mirror.applyRecords(
      records.map((record) => ({ shop, records: [record] })),
      START,
      searches,
    );
    for (const search of searches) search.end();
    expect([await tablesWith(opened, ADA), await tablesWith(opened, "Grace")]).toEqual([[], []]);
  });

  test("is complete even if an earlier commit with its search failed", async () => {
    const opened = await engine.open();
    const { store } = opened;
    const [shop, other] = [await shopWithEvents(store), await shopWithEvents(store, "other")];
    await commit(store, shop, [ada, reward("r", { contact: ADA })]);
    const search = await store.mirror.searchTexts(shop, new Set([gid.customer(1)]));
    await commit(store, shop, [reward("a", { contact: ADA })]);
    const broken = { ...customer(9), email: 1n as never };
    const failing = [
      { shop, records: [redaction] },
      { shop: other, records: [broken] },
    ];
    expect(await failures([store.mirror.applyRecords(failing, START, [search])])).not.toEqual([undefined]);
    await commit(store, shop, [reward("b", { contact: ADA })]);
    await store.mirror.applyRecords([{ shop, records: [redaction] }], START, [search]);
    search.end();
    expect(await tablesWith(opened, ADA)).toEqual([]);
  });

  test("fails if the search was for another person or shop", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    await commit(store, shop, [ada]);
    const searches = [
      await store.mirror.searchTexts(shop, new Set([gid.customer(2)])),
      await store.mirror.searchTexts(other, new Set([gid.customer(1)])),
    ];
    const [failure] = await failures([store.mirror.applyRecords([{ shop, records: [redaction] }], START, searches)]);
    for (const search of searches) search.end();
    expect(failure).toEqual(new Error("a commit redacts a person whose texts were not searched"));
  });
});
