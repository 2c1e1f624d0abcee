import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { cancelFlow, customer, order, reward, subscription } from "../support/records.ts";
import { engines, storeWithEvents, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { chooseAllEvents, commit, receipt, receiveAll, shopWithEvents, TOKENS, URL } from "./fixtures.ts";

/** Each case: what the shop lacks, how the test takes it away, and which topics a new subscription still queues. */
const CHOICES: [string, (store: Store, domain: string, id: number) => Promise<unknown>, string[]][] = [
  ["nothing", async () => {}, ["subscription.created", "subscription-created"]],
  ["a plan with access", (store, domain) => store.shops.set(domain, { plan: "free" }), []],
  [
    "the topic",
    (store, _, id) => store.webhooks.set(id, { topics: ["order.charged"] }, START),
    ["subscription-created"],
  ],
  ["a URL", (store, _, id) => store.webhooks.set(id, { url: null }, START), ["subscription-created"]],
  ["an endpoint", (store, _, id) => store.webhooks.clear(id), ["subscription-created"]],
  [
    "the trigger",
    (store, domain) => store.shops.set(domain, { triggers: ["billing-attempt-failed"] }),
    ["subscription.created"],
  ],
  ["a connection", (store, _, id) => store.connections.disconnect(id, START + 1), ["subscription.created"]],
];

describe.each(engines())("$name: events of a commit", (engine) => {
  test("are queued with it in their order, due at once", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    const result = await commit(
      store,
      shop,
      [subscription(1), order(1, 1), reward("r"), cancelFlow("c"), customer(9)],
      START + 3,
    );
    expect(result).toEqual({ accepted: 5, changed: 5, events: 6 });
    const queued = await rows("deliveries");
    expect(queued.map(({ kind, topic }) => [kind, topic])).toEqual([
      ["webhook", "subscription.created"],
      ["trigger", "subscription-created"],
      ["webhook", "order.charged"],
      ["webhook", "loyalty.reward_earned"],
      ["trigger", "streak-milestone-reached"],
      ["webhook", "cancel_flow.completed"],
    ]);
    expect(queued[0]).toEqual({
      number: queued[0]?.["number"],
      id: expect.stringMatching(/^whd_[a-z2-7]{24}$/),
      shop_id: shop.id,
      kind: "webhook",
      topic: "subscription.created",
      test: false,
      redacted: false,
      body: expect.stringContaining(`"created_at":"2026-03-01T12:00:00.003Z","shop":"${shop.domain}"`),
      secret_version: 1,
      status: "pending",
      attempts: 0,
      round: 0,
      next_attempt_at: START + 3,
      claimable_at: START + 3,
      lease: null,
      last_status_code: null,
      error: null,
      created_at: START + 3,
      ended_at: null,
    });
    for (const { kind, id, body } of queued.filter((each) => each["kind"] === "webhook")) {
      expect({ kind, id: JSON.parse(String(body)).id }).toEqual({ kind, id });
    }
  });

  test.each(CHOICES)("of a shop that lacks %s are queued for the other topics only", async (_, take, expected) => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await shopWithEvents(store, "other");
    await take(store, shop.domain, shop.id);
    await commit(store, shop, [subscription(1)]);
    expect((await rows("deliveries")).map(({ topic, shop_id }) => ({ topic, shop_id }))).toEqual(
      expected.map((topic) => ({ topic, shop_id: shop.id })),
    );
  });

  test("of a shop that chose no topics are not queued, whatever other shops chose", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    await chooseAllEvents(store, other);
    expect(await commit(store, shop, [subscription(1)])).toEqual({ accepted: 1, changed: 1, events: 0 });
    expect(await rows("deliveries")).toEqual([]);
  });

  test("are signed with the newest secret, and triggers are not signed", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    for (let version = 2; version <= 11; version += 1) await store.webhooks.rotateSecret(shop.id, START);
    await commit(store, shop, [subscription(1)]);
    expect((await rows("deliveries")).map(({ kind, secret_version }) => [kind, secret_version])).toEqual([
      ["webhook", 11],
      ["trigger", 0],
    ]);
  });

  test("are queued for each shop of the commit by its own choice", async () => {
    const { store, rows, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    await store.webhooks.set(alpha.id, { url: URL, topics: TOPIC_NAMES }, START);
    await store.connections.connect(beta.id, "token", TOKENS, [], START);
    await store.shops.set(beta.domain, { triggers: TRIGGER_HANDLES });
    const results = await store.mirror.applyRecords(
      [
        { shop: alpha, records: [subscription(1)] },
        { shop: beta, records: [subscription(1)] },
        { shop: alpha, records: [subscription(2)], eventsSince: Number.POSITIVE_INFINITY },
      ],
      START,
      [],
    );
    expect(results).toEqual([1, 1, 0].map((events) => ({ accepted: 1, changed: 1, events })));
    expect((await rows("deliveries")).map(({ shop_id, topic }) => [shop_id, topic])).toEqual([
      [alpha.id, "subscription.created"],
      [beta.id, "subscription-created"],
    ]);
  });
});

describe.each(engines())("$name: inbox items", (engine) => {
  test("leave the inbox with the commit that processes them, and other items stay", async () => {
    const { store, rows, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    await receiveAll(store, [receipt(alpha, "a1"), receipt(alpha, "a2"), receipt(alpha, "a3"), receipt(beta, "b1")]);
    const [first, second, , betas] = (await rows("inbox")).map(({ number }) => Number(number));
    const results = await store.mirror.applyRecords(
      [
        { shop: alpha, records: [customer(1)], inboxNumbers: [first ?? 0, betas ?? 0] },
        { shop: alpha, records: [], inboxNumbers: [second ?? 0] },
      ],
      START,
      [],
    );
    expect(results.map((result) => "accepted" in result && result.accepted)).toEqual([1, 0]);
    expect(await store.inbox.count(alpha.id)).toEqual({ waiting: 1, failed: 0 });
    expect(await store.inbox.count(beta.id)).toEqual({ waiting: 1, failed: 0 });
  });

  test("that left are still recognised by their ids when they are sent again", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await store.inbox.receive([receipt(shop, "w1")], START);
    const inboxNumbers = (await rows("inbox")).map(({ number }) => Number(number));
    await store.mirror.applyRecords([{ shop, records: [], inboxNumbers }], START, []);
    expect(await store.inbox.receive([receipt(shop, "w1")], START)).toEqual([false]);
    expect(await rows("inbox")).toEqual([]);
  });
});
