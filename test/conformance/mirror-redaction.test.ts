import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/event.ts";
import { customerId } from "../../src/domain/ids.ts";
import type { MirrorRecord } from "../../src/domain/platform-records.ts";
import type { ShopRef } from "../../src/domain/shop.ts";
import type { AttemptResult, Claim } from "../../src/store/deliveries.ts";
import type { Store } from "../../src/store/store.ts";
import { START } from "../support/app.ts";
import { customer, gid, order, reward, subscription } from "../support/records.ts";
import { TABLE_NAMES } from "../support/tables.ts";
import { engines, type TestStore } from "./engines.ts";
import {
  addShop,
  chooseAllEvents,
  claim,
  commit,
  failed,
  failures,
  receipt,
  record,
  succeeded,
  URL,
} from "./fixtures.ts";

const ADA = "ada@example.com";
const redaction: MirrorRecord = { type: "redaction", shopifyId: gid.customer(1), asOf: START };
const ada = customer(1, { email: ADA, firstName: "Ada", lastName: "Lovelace" });
const adaWebhook = `{"id":5001,"customer":{"id":1,"email":"${ADA}","first_name":"Ada"},"total":"25.00"}`;
const grace = `{"customer":{"id":2,"email":"grace@example.com"},"count":11}`;

/** The tables that still have a text. */
async function tablesWith({ rows }: TestStore, text: string): Promise<string[]> {
  const texts = await Promise.all(
    TABLE_NAMES.map(async (table) => [table, JSON.stringify(await rows(table))] as const),
  );
  return texts.filter(([, json]) => json.includes(text)).map(([table]) => table);
}

async function addShopWithEvents(store: Store, name?: string): Promise<ShopRef> {
  const shop = await addShop(store, name);
  await chooseAllEvents(store, shop);
  return shop;
}

/** Fills the inbox with other people's webhooks, so that a search of the texts takes several turns at its end. */
async function receiveMany(store: Store, shop: ShopRef): Promise<void> {
  await store.inbox.receive(
    Array.from({ length: 60 }, () => receipt(shop, null, { body: grace })),
    START,
  );
}

for (const engine of engines()) {
  describe(`${engine.name}: a redaction`, () => {
    test("redacts what was stored before it: profile, rewards, queued and sent events, and the inbox", async () => {
      const opened = await engine.open();
      const { store, rows } = opened;
      const shop = await addShopWithEvents(store);
      await commit(store, shop, [ada, reward("r", { contact: ADA, gift: { to: [ADA, "Ada Lovelace"], cents: 5 } })]);
      const claims = await claim(store, shop);
      await record(
        store,
        claims.map((each) => succeeded(each)),
      );
      await store.inbox.receive(
        [receipt(shop, "w1", { body: adaWebhook }), receipt(shop, null, { body: grace })],
        START,
      );
      const [failedItem] = await rows("inbox");
      await store.inbox.postpone(shop.id, [Number(failedItem?.["number"])], "no", null);
      expect(await tablesWith(opened, ADA)).toEqual(["customers", "deliveries", "inbox", "occurrences"]);

      expect(await commit(store, shop, [redaction])).toEqual({ accepted: 1, changed: 1, events: 0 });
      expect(await tablesWith(opened, ADA)).toEqual([]);
      expect(await tablesWith(opened, "Lovelace")).toEqual([]);
      expect((await rows("occurrences")).map(({ json }) => json)).toEqual([
        JSON.stringify(reward("r", { contact: null, gift: { to: [null, null], cents: 5 } })),
      ]);
      expect((await rows("inbox")).map(({ body }) => body)).toEqual([
        '{"id":5001,"customer":{"id":1,"email":null,"first_name":null},"total":"25.00"}',
        grace,
      ]);
      const [sent] = await rows("deliveries");
      expect(JSON.parse(String(sent?.["body"]))).toMatchObject({
        id: sent?.["id"],
        data: { contact: null, gift: { to: [null, null], cents: 5 } },
      });
    });

    test("removes the answers to all webhooks that name the person, and keeps none to a body that it changed meanwhile", async () => {
      const { store } = await engine.open();
      const [shop, other] = [await addShop(store), await addShop(store, "other")];
      for (const each of [shop, other]) {
        await store.webhooks.set(each.id, { url: URL, topics: TOPIC_NAMES }, START);
        await commit(store, each, [ada, customer(2), subscription(1), reward("r", { contact: ADA }), reward("plain")]);
      }
      await commit(store, shop, [
        reward("s", { customer: gid.customer(2) }),
        subscription(2, { customer: gid.customer(2) }),
      ]);
      const answered = (each: Claim): AttemptResult => {
        const { outcome, ...result } = failed(each);
        return { ...result, outcome: { ...outcome, answer: `found ${ADA}` } };
      };
      const ended: Claim[] = [];
      for (const each of [shop, other]) {
        const claims = await claim(store, each);
        ended.push(...claims.toSorted((a, b) => a.number - b.number));
        await record(store, claims.map(answered));
      }
      const underWay = await claim(store, shop, { now: START + 1_000 });
      await commit(store, shop, [redaction]);
      await record(store, underWay.map(answered));
      const left = await Promise.all(
        ended.map(async ({ shopId, id }) => {
          const { topic, body, history } = await store.deliveries.show(shopId, id);
          const isAdas = body.includes(customerId(shop.domain, gid.customer(1)));
          return [shopId === shop.id && isAdas, topic, history.map(({ url, answer }) => [url, answer !== null])];
        }),
      );
      const kept = [URL, true];
      const removed = [URL, false];
      expect(left).toEqual([
        [true, "subscription.created", [removed, kept]],
        [true, "loyalty.reward_earned", [removed, removed]],
        [true, "loyalty.reward_earned", [removed, kept]],
        [false, "loyalty.reward_earned", [kept, kept]],
        [false, "subscription.created", [kept, kept]],
        [false, "subscription.created", [kept]],
        [false, "loyalty.reward_earned", [kept]],
        [false, "loyalty.reward_earned", [kept]],
      ]);
    });

    test("redacts the reward that the same commit adds, and its event", async () => {
      const opened = await engine.open();
      const shop = await addShopWithEvents(opened.store);
      const submissions = [ada, reward("r", { contact: ADA }), redaction].map((each) => ({ shop, records: [each] }));
      await opened.store.mirror.applyRecords(submissions, START);
      expect(await tablesWith(opened, ADA)).toEqual([]);
      expect((await opened.rows("deliveries")).map(({ topic }) => topic)).toEqual([
        "loyalty.reward_earned",
        "streak-milestone-reached",
      ]);
      expect((await opened.rows("occurrences")).map(({ json }) => json)).toEqual([
        JSON.stringify(reward("r", { contact: null })),
      ]);
    });

    test("also redacts what was stored before its commit", async () => {
      const opened = await engine.open();
      const shop = await addShopWithEvents(opened.store);
      await commit(opened.store, shop, [ada, reward("old", { contact: ADA })]);
      await opened.store.inbox.receive([receipt(shop, "w1", { body: adaWebhook })], START);
      await commit(opened.store, shop, [reward("new", { contact: ADA }), redaction]);
      expect(await tablesWith(opened, ADA)).toEqual([]);
      expect(await opened.rows("occurrences")).toHaveLength(2);
    });

    test("of two people in one commit redacts a text that names both", async () => {
      const opened = await engine.open();
      const shop = await addShop(opened.store);
      await commit(opened.store, shop, [ada, customer(2, { firstName: "Grace" })]);
      await opened.store.inbox.receive(
        [receipt(shop, null, { body: '{"ids":[1,2],"said":["Ada","Grace","Eve"]}' })],
        START,
      );
      await commit(opened.store, shop, [redaction, { ...redaction, shopifyId: gid.customer(2) }]);
      expect((await opened.rows("inbox")).map(({ body }) => body)).toEqual(['{"ids":[1,2],"said":[null,null,"Eve"]}']);
    });

    test("of many people in one commit redacts each, and lets others work while it searches many texts", async () => {
      const opened = await engine.open();
      const { store, rows } = opened;
      const shop = await addShopWithEvents(store);
      const people = Array.from({ length: 30 }, (_, n) => n + 1);
      await commit(
        store,
        shop,
        people.map((n) => customer(n, { email: `${n}@example.com` })),
      );
      for (let round = 0; round < 4; round += 1) {
        const rewards = Array.from({ length: 600 }, (_, n) =>
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
      expect(holders).toHaveLength(4 * 150);
    });

    test("in a shop with long texts lets others work after few of them", async () => {
      const { store } = await engine.open();
      const shop = await addShopWithEvents(store);
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
      const shop = await addShopWithEvents(store);
      await commit(store, shop, [ada, reward("m", { customer: gid.customer(2) })]);
      await receiveMany(store, shop);
      const searching = store.mirror.searchTexts(shop, new Set([gid.customer(1)]));
      // The ids of the rewards are in front of the one that was searched already, and behind it.
      await store.inbox.receive([receipt(shop, "w1", { body: adaWebhook })], START);
      await commit(other, shop, [reward("a", { contact: ADA }), reward("z", { contact: ADA })]);
      expect(await tablesWith(opened, ADA)).toEqual(["customers", "deliveries", "inbox", "occurrences"]);
      const search = await searching;
      await store.mirror.applyRecords([{ shop, records: [redaction] }], START, [search]);
      search.end();
      expect(await tablesWith(opened, ADA)).toEqual([]);
    });

    test("of two commits at once redacts a text that names both people, although the first gives it another key", async () => {
      const opened = await engine.open();
      const { store } = opened;
      const shop = await addShopWithEvents(store);
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
      const shop = await addShopWithEvents(store);
      await commit(store, shop, [ada, reward("m", { contact: ADA })]);
      const search = await store.mirror.searchTexts(shop, new Set([gid.customer(1)]));
      await other.inbox.receive([receipt(shop, "w1", { body: adaWebhook })], START);
      const bodies = [[reward("b", { contact: ADA })], [reward("n", { contact: ADA })]];
      const number = (await other.intakeBodies.begin(shop.id)) ?? 0;
      await other.intakeBodies.add(
        shop.id,
        number,
        bodies.map((body) => JSON.stringify(body)),
      );
      await other.intakeBodies.complete(shop.id, number, 2);
      // The first part becomes a reward, whose id is in front of the one that was searched; the second one waits.
      await other.mirror.applyIntakeParts({ number, shop }, { parts: 1, characters: 1 }, START);
      await commit(other, shop, [reward("a", { contact: ADA }), reward("z", { contact: ADA })]);
      await store.mirror.applyRecords([{ shop, records: [redaction] }], START, [search]);
      search.end();
      expect(await tablesWith(opened, ADA)).toEqual([]);
      expect(await opened.rows("occurrences")).toHaveLength(4);
    });

    test("finds a reward whose id another redaction changed after its search", async () => {
      const opened = await engine.open();
      const { store } = opened;
      const shop = await addShopWithEvents(store);
      const second = { ...redaction, shopifyId: gid.customer(2) };
      const both = { customer: gid.customer(2), referred: gid.customer(1), contact: ADA, friend: "Grace" };
      await commit(store, shop, [ada, customer(2, { firstName: "Grace" }), reward(`z-${ADA}`, both)]);
      const search = await store.mirror.searchTexts(shop, new Set([gid.customer(1), gid.customer(2)]));
      await store.mirror.applyRecords([{ shop, records: [redaction] }], START, [search]);
      await store.mirror.applyRecords([{ shop, records: [second] }], START, [search]);
      search.end();
      expect([await tablesWith(opened, ADA), await tablesWith(opened, "Grace")]).toEqual([[], []]);
    });

    test("of people of two searches redacts a text that names both", async () => {
      const opened = await engine.open();
      const { store } = opened;
      const shop = await addShopWithEvents(store);
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

    test("is complete although a commit with its search failed before, or its search is of another person", async () => {
      const opened = await engine.open();
      const { store } = opened;
      const [shop, other] = [await addShopWithEvents(store), await addShopWithEvents(store, "other")];
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

      const wrong = await store.mirror.searchTexts(shop, new Set([gid.customer(2)]));
      await commit(store, shop, [ada, reward("c", { contact: ADA })]);
      await store.mirror.applyRecords([{ shop, records: [redaction] }], START, [wrong]);
      wrong.end();
      expect(await tablesWith(opened, ADA)).toEqual([]);
    });

    test("does not change what comes after it, in its own commit or a later one", async () => {
      const opened = await engine.open();
      const shop = await addShopWithEvents(opened.store);
      await commit(opened.store, shop, [ada, redaction, reward("r1", { contact: "one" })]);
      await commit(opened.store, shop, [reward("r2", { contact: ADA })]);
      expect(await tablesWith(opened, ADA)).toEqual(["deliveries", "occurrences"]);
      expect((await opened.rows("occurrences")).map(({ json }) => JSON.parse(String(json)).contact)).toEqual([
        "one",
        ADA,
      ]);
    });

    test("does not change other people and other shops", async () => {
      const opened = await engine.open();
      const { store, rows } = opened;
      const [alpha, beta] = [await addShopWithEvents(store, "alpha"), await addShopWithEvents(store, "beta")];
      await commit(store, alpha, [
        customer(2, { email: ADA }),
        reward("other", { customer: gid.customer(2), cycles: 1, given_name: "Ada" }),
      ]);
      await commit(store, beta, [ada, reward("r", { contact: ADA, milestone: 7 })]);
      await store.inbox.receive(
        [receipt(beta, "w1", { body: adaWebhook }), receipt(alpha, "w2", { body: grace })],
        START,
      );
      const tables = ["occurrences", "deliveries", "inbox"] as const;
      const before = await Promise.all(tables.map(rows));
      await commit(store, alpha, [ada, redaction]);
      expect(await Promise.all(tables.map(rows))).toEqual(before);
      expect(await tablesWith(opened, ADA)).toEqual(["customers", "deliveries", "inbox", "occurrences"]);

      // The same ids in both shops are different rewards.
      await commit(store, alpha, [reward("r", { contact: "Ada@Example.com" })]);
      await commit(store, alpha, [{ ...ada, firstName: "Countess" }, redaction]);
      const rewards = (await rows("occurrences"))
        .filter(({ id }) => id === "r")
        .map(({ shop_id, json }) => [shop_id, json]);
      expect(rewards).toEqual([
        [alpha.id, JSON.stringify(reward("r", { contact: null }))],
        [beta.id, JSON.stringify(reward("r", { contact: ADA, milestone: 7 }))],
      ]);
    });

    test("of a refused submission redacts nothing", async () => {
      const opened = await engine.open();
      const shop = await addShopWithEvents(opened.store);
      await commit(opened.store, shop, [ada, reward("r", { contact: ADA })]);
      await opened.store.inbox.receive([receipt(shop, "w1", { body: adaWebhook })], START);
      const before = await Promise.all(TABLE_NAMES.map(opened.rows));
      await opened.store.mirror.applyRecords([{ shop, records: [redaction, order(9, 1)] }], START);
      expect(await Promise.all(TABLE_NAMES.map(opened.rows))).toEqual(before);
    });

    test("of a person whose number is longer than 2^53 keeps the other numbers of the texts exact", async () => {
      const { store, rows } = await engine.open();
      const shop = await addShop(store);
      const person = gid.customer("9007199254740993");
      await store.inbox.receive(
        [
          receipt(shop, "w1", {
            body: `{"customer":{"id":9007199254740993,"email":"${ADA}"},"order":9007199254740995}`,
          }),
        ],
        START,
      );
      await commit(store, shop, [{ ...redaction, shopifyId: person }]);
      expect((await rows("inbox"))[0]?.["body"]).toBe(
        '{"customer":{"id":"9007199254740993","email":null},"order":"9007199254740995"}',
      );
    });

    test("is remembered: older data of the platform about the person changes nothing any more", async () => {
      const opened = await engine.open();
      const shop = await addShop(opened.store);
      await commit(opened.store, shop, [redaction]);
      await commit(opened.store, shop, [{ ...ada, asOf: START }]);
      expect(await tablesWith(opened, ADA)).toEqual([]);
    });
  });
}
