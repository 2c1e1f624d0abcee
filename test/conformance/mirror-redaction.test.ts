import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { customerId } from "../../src/domain/ids.ts";
import type { LineItem } from "../../src/domain/resources.ts";
import type { AttemptResult, Claim } from "../../src/store/port/deliveries.ts";
import { START } from "../support/app.ts";
import { customer, gid, line, order, reward, subscription } from "../support/records.ts";
import { applySearched } from "../support/searched.ts";
import { type Row, TABLE_NAMES } from "../support/tables.ts";
import { claim, failed, record, succeeded } from "./delivery-fixtures.ts";
import { engines, storeWithEvents, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { commit, HOUR, receipt, receiveAll, shopWithEvents, URL } from "./fixtures.ts";
import { ADA, ada, adaWebhook, grace, redaction, tablesWith } from "./redactions.ts";

describe.each(engines())("$name: a redaction", (engine) => {
  test("redacts what was stored before it: profile, rewards, queued and sent events, and the inbox", async () => {
    const opened = await storeWithEvents(engine);
    const { store, rows, shop } = opened;
    await commit(store, shop, [ada, reward("r", { contact: ADA, gift: { to: [ADA, "Ada Lovelace"], cents: 5 } })]);
    const claims = await claim(store, shop);
    await record(
      store,
      claims.map((each) => succeeded(each)),
    );
    await store.inbox.receive([receipt(shop, "w1", { body: adaWebhook }), receipt(shop, null, { body: grace })], START);
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

  test("finds the full name and address in titles and reasons, and leaves other rows as they are", async () => {
    const opened = await storeWithEvents(engine);
    const { store, rows, shop } = opened;
    const lines = [
      { ...line, title: "Mug for ADA LOVELACE" },
      { ...line, title: "Ada" },
    ];
    const about = { status: "FAILED", lines, reason: `declined for ${ADA}` } as const;
    const others = [customer(2), subscription(2, { lines }), order(2, 1, about)];
    await commit(store, shop, [ada, subscription(1, { lines }), order(1, 1, about), order(1, 2), ...others]);
    const before = [...(await rows("subscriptions")), ...(await rows("orders"))];
    const { changeCount = 0 } = (await store.pages.list(shop.id, "orders", 1, null)) ?? {};

    expect(await commit(store, shop, [order(1, 3, about), order(2, 1, about), redaction])).toMatchObject({
      changed: 2,
    });
    const texts = (row: Row) => [
      JSON.parse(String(row["json"])).lines.map(({ title }: LineItem) => title),
      row["reason"],
    ];
    const after = [...(await rows("subscriptions")), ...(await rows("orders"))];
    const changed = after.filter((row) => Number(row["change_number"]) > changeCount);
    expect(changed.map(texts)).toEqual([
      [["Mug for [redacted]", "Ada"], undefined],
      [["Mug for [redacted]", "Ada"], "declined for [redacted]"],
      [["Mug for [redacted]", "Ada"], "declined for [redacted]"],
    ]);
    const unchanged = after.filter((row) => Number(row["change_number"]) <= changeCount);
    expect(unchanged).toEqual(before.filter(({ id }) => unchanged.some((row) => row["id"] === id)));
    expect(unchanged.map(texts)).toContainEqual([["Mug for ADA LOVELACE", "Ada"], about.reason]);
    expect(unchanged).toHaveLength(3);
  });

  test("removes the answers to webhooks that name the person, and keeps no later answer to them", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
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
    await record(store, (await claim(store, shop, { now: START + HOUR })).map(answered));
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
      [true, "subscription.created", [removed, removed, removed]],
      [true, "loyalty.reward_earned", [removed, removed, removed]],
      [true, "loyalty.reward_earned", [removed, removed, removed]],
      [false, "loyalty.reward_earned", [kept, kept, kept]],
      [false, "subscription.created", [kept, kept, kept]],
      [false, "subscription.created", [kept]],
      [false, "loyalty.reward_earned", [kept]],
      [false, "loyalty.reward_earned", [kept]],
    ]);
  });

  test("redacts the reward that the same commit adds, and its event", async () => {
    const { shop, ...opened } = await storeWithEvents(engine);
    const submissions = [ada, reward("r", { contact: ADA }), redaction].map((each) => ({ shop, records: [each] }));
    await applySearched(opened.store.mirror, submissions, START);
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
    const { shop, ...opened } = await storeWithEvents(engine);
    await commit(opened.store, shop, [ada, reward("old", { contact: ADA })]);
    await opened.store.inbox.receive([receipt(shop, "w1", { body: adaWebhook })], START);
    await commit(opened.store, shop, [reward("new", { contact: ADA }), redaction]);
    expect(await tablesWith(opened, ADA)).toEqual([]);
    expect(await opened.rows("occurrences")).toHaveLength(2);
  });

  test("of two people in one commit redacts a text that names both", async () => {
    const { shop, ...opened } = await storeWithShop(engine);
    await commit(opened.store, shop, [ada, customer(2, { firstName: "Grace" })]);
    await receiveAll(opened.store, [receipt(shop, null, { body: '{"ids":[1,2],"said":["Ada","Grace","Eve"]}' })]);
    await commit(opened.store, shop, [redaction, { ...redaction, shopifyId: gid.customer(2) }]);
    expect((await opened.rows("inbox")).map(({ body }) => body)).toEqual(['{"ids":[1,2],"said":[null,null,"Eve"]}']);
  });

  test("does not change records after it, in its own commit or a later one", async () => {
    const { shop, ...opened } = await storeWithEvents(engine);
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
    const [alpha, beta] = [await shopWithEvents(store, "alpha"), await shopWithEvents(store, "beta")];
    await commit(store, alpha, [
      customer(2, { email: ADA }),
      reward("other", { customer: gid.customer(2), cycles: 1, given_name: "Ada" }),
    ]);
    await commit(store, beta, [ada, reward("r", { contact: ADA, milestone: 7 })]);
    await receiveAll(store, [receipt(beta, "w1", { body: adaWebhook }), receipt(alpha, "w2", { body: grace })]);
    const tables = ["occurrences", "deliveries", "inbox"] as const;
    const before = await Promise.all(tables.map(rows));
    await commit(store, alpha, [ada, redaction]);
    expect(await Promise.all(tables.map(rows))).toEqual(before);
    expect(await tablesWith(opened, ADA)).toEqual(["customers", "deliveries", "inbox", "occurrences"]);

    // Both shops have a reward with this id, but these are different rewards.
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
    const { shop, ...opened } = await storeWithEvents(engine);
    await commit(opened.store, shop, [ada, reward("r", { contact: ADA })]);
    await opened.store.inbox.receive([receipt(shop, "w1", { body: adaWebhook })], START);
    const before = await Promise.all(TABLE_NAMES.map(opened.rows));
    await applySearched(opened.store.mirror, [{ shop, records: [redaction, order(9, 1)] }], START);
    expect(await Promise.all(TABLE_NAMES.map(opened.rows))).toEqual(before);
  });

  test("of a person whose number is longer than 2^53 keeps the other numbers of the texts exact", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const person = gid.customer("9007199254740993");
    await receiveAll(store, [
      receipt(shop, "w1", { body: `{"customer":{"id":9007199254740993,"email":"${ADA}"},"order":9007199254740995}` }),
    ]);
    await commit(store, shop, [{ ...redaction, shopifyId: person }]);
    expect((await rows("inbox"))[0]?.["body"]).toBe(
      '{"customer":{"id":"9007199254740993","email":null},"order":"9007199254740995"}',
    );
  });

  test("is remembered: older data of the platform about the person changes nothing", async () => {
    const { shop, ...opened } = await storeWithShop(engine);
    await commit(opened.store, shop, [redaction]);
    await commit(opened.store, shop, [{ ...ada, asOf: START }]);
    expect(await tablesWith(opened, ADA)).toEqual([]);
  });
});
