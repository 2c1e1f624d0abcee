import { describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { createCheckpoints } from "../../../src/domain/pages/checkpoint.ts";
import { Customer, Order, Subscription } from "../../../src/domain/resources.ts";
import { createEntityTags } from "../../../src/http/entity-tags.ts";
import { createAnswerCache } from "../../../src/http/read/answer-cache.ts";
import { createApiKeyAuthenticator } from "../../../src/http/read/api-key-authenticator.ts";
import { createLargePages } from "../../../src/http/read/large-page.ts";
import { createReadApi } from "../../../src/http/read/read-api.ts";
import { createListHandler } from "../../../src/http/read/rows.ts";
import { createRequestLimits } from "../../../src/http/request-limits.ts";
import { createLog } from "../../../src/lib/log.ts";
import { answerOf, badCursor, page, refusal, UNAUTHORIZED } from "../../support/answer.ts";
import { apply, type PageBody, testShop } from "../../support/app.ts";
import { customer, gid, order, subscription } from "../../support/records.ts";

const BAD_CURSOR = badCursor(
  "not_issued",
  "The cursor is not from a page of this list. Pass nextCursor on unchanged, URL-encoded.",
);
const PLAN_REQUIRED = refusal(
  403,
  "plan_required",
  "This shop's plan has no API access: it comes with the Pro plan, and with the Free plan through the API and webhooks add-on.",
);
const EMPTY = page([], 50, null);

describe("a list checks the key, then the plan, then the query", () => {
  test("a missing key, a wrong one, a revoked one and a malformed header get the same 401", async () => {
    const { app, request, clock, shop, key, keyId } = await testShop({}, "free");
    await app.store.keys.revoke(shop.id, keyId, clock.now());
    const unknown = `Bearer cad_pk_${"0".repeat(48)}`;
    for (const authorization of [
      undefined,
      "",
      unknown,
      `Bearer ${key}`,
      `Bearer  ${key}`,
      `Token ${key}`,
      key,
      "Bearer",
      "Bearer \u00ff",
    ]) {
      const headers = authorization === undefined ? {} : { Authorization: authorization };
      expect([authorization, await answerOf(await request("/api/v1/orders?cursor=bad", { headers }))]).toEqual([
        authorization,
        UNAUTHORIZED,
      ]);
    }
  });

  test.each([
    ["free", "cursor=bad", PLAN_REQUIRED],
    ["free+addon", "cursor=bad", BAD_CURSOR],
    ["free+addon", "", EMPTY],
    ["pro", "", EMPTY],
  ] as const)("plan %s, query %p", async (plan, query, expected) => {
    const { get } = await testShop({}, plan);
    expect(await answerOf(await get(`/api/v1/orders?${query}`))).toEqual(expected);
  });
});

test("a request that waits for its turn while the removal of its shop begins gets nothing of the shop", async () => {
  const { app, clock, shop, key } = await testShop();
  await apply(app, shop, [customer(1)]);
  const log = createLog("error", { write: () => undefined }, clock.now);
  const authenticator = createApiKeyAuthenticator({
    store: app.store.keys,
    now: clock.now,
    clock: clock.monotonic,
    log,
    wrongKeys: { count: () => undefined },
  });
  const waits = {
    enter: async () => void (await app.store.shops.beginRemoval(shop.domain, clock.now())),
    noteLong: () => undefined,
  };
  const readApi = createReadApi({
    clock: clock.monotonic,
    authenticator,
    keyLimits: createRequestLimits(null, clock.monotonic),
    entityTags: createEntityTags("1.0.0", app.store.epoch),
    answers: createAnswerCache(),
    readers: waits,
    largePages: createLargePages(),
  });
  const checkpoints = createCheckpoints({
    ...app.store,
    ...app.store.shops,
    ...app.store.moves,
    shopIds: async () => [],
    now: clock.now,
  });
  const lists = { pagesFor: app.store.pagesFor, checkpoints, api: readApi, publicUrl: null, log };
  const list = createListHandler("customers", lists);
  const request = new Request("http://sds.test/api/v1/customers", { headers: { Authorization: `Bearer ${key}` } });
  const context = { id: "", isSecure: () => false, client: () => "" };
  const answered = (async () => list(request, context))();
  expect(await answered.catch((thrown: unknown) => thrown)).toMatchObject({ code: "unauthorized" });
});

describe("a page", () => {
  test("of subscriptions, customers and orders has exactly the fields of its resource, in their order", async () => {
    const { app, shop, get } = await testShop();
    const profile = {
      email: "ada@example.com",
      firstName: "Ada",
      lastName: "Abe",
      marketingConsent: true,
      creditsCents: 5,
      loyaltyTier: 1,
    };
    await apply(app, shop, [customer(1, profile), subscription(1), order(1, 1)]);
    const rows = async (resource: string) => ((await (await get(`/api/v1/${resource}`)).json()) as PageBody).data;
    const [subscriptionRow] = await rows("subscriptions");
    const [customerRow] = await rows("customers");
    const [orderRow] = await rows("orders");

    expect(Object.keys(subscriptionRow ?? {})).toEqual(Object.keys(Subscription.properties));
    expect(Object.keys(customerRow ?? {})).toEqual(Object.keys(Customer.properties));
    expect(Object.keys(orderRow ?? {})).toEqual(Object.keys(Order.properties));
    expect([
      Value.Check(Subscription, subscriptionRow),
      Value.Check(Customer, customerRow),
      Value.Check(Order, orderRow),
    ]).toEqual([true, true, true]);

    const { type: _type, customer: _customer, ...given } = subscription(1);
    expect(subscriptionRow).toEqual({
      ...given,
      id: subscriptionRow?.["id"],
      customerId: customerRow?.["id"],
      cyclesCompleted: 1,
      cancelledAt: null,
    });
    expect(customerRow).toEqual({
      id: customerRow?.["id"],
      shopifyId: gid.customer(1),
      ...profile,
      subscriptionCount: 1,
      createdAt: "2026-03-01T12:00:00.000Z",
    });
    expect(orderRow).toMatchObject({
      contractId: subscriptionRow?.["id"],
      customerId: customerRow?.["id"],
      cycleNumber: 1,
      totalCents: 1900,
    });
  });

  test("is newest first; rows with one date are ordered by id, descending", async () => {
    const { app, shop, all } = await testShop();
    const dates = ["2026-01-02T00:00:00.000Z", "2026-01-01T00:00:00.000Z", "2026-01-03T00:00:00.000Z"];
    await apply(
      app,
      shop,
      Array.from({ length: 30 }, (_, n) => subscription(n + 1, { startedAt: dates[n % 3] as string })),
    );
    const order = (await all("subscriptions")).map(({ startedAt, id }) => `${startedAt} ${id}`);
    expect(order).toEqual(order.toSorted().toReversed());
  });

  test.each([
    ["", 50],
    ["limit=0", 50],
    ["limit=-5", 50],
    ["limit=12abc", 50],
    ["limit=1.5", 50],
    ["limit=1e3", 50],
    ["limit=", 50],
    ["limit=+5", 50],
    ["limit=%205", 50],
    ["limit=٣", 50],
    ["limit=0x10", 50],
    ["limit=1", 1],
    ["limit=007", 7],
    ["limit=%31%30", 10],
    ["limit=250", 250],
    ["limit=251", 250],
    [`limit=${"9".repeat(400)}`, 250],
    ["limit=3&limit=4", 4],
    ["limit=3&limit=x", 50],
    ["other=1&limit=3&shop=beta.myshopify.com", 3],
  ])("?%s has limit %i", async (query, limit) => {
    const { get } = await testShop();
    expect(await answerOf(await get(`/api/v1/customers?${query}`))).toEqual(page([], limit, null));
  });

  test.each([1, 2, 3, 4, 5, 50])(
    "with limit %i, of a shop with 4 rows, says whether another page follows",
    async (limit) => {
      const { app, shop, get } = await testShop();
      await apply(
        app,
        shop,
        [1, 2, 3, 4].map((n) => customer(n, { firstName: `,{"id":"${n}"`, lastName: '"createdAt":"' })),
      );
      const { data, page } = (await (await get(`/api/v1/customers?limit=${limit}`)).json()) as PageBody;
      const last = data.at(-1);
      expect(data).toHaveLength(Math.min(limit, 4));
      expect(page).toEqual({ limit, nextCursor: limit < 4 ? `${last?.["createdAt"]}~${last?.["id"]}` : null });
    },
  );
});

describe("a cursor", () => {
  test("from a page of another resource or another shop is refused, and does not show what other shops have", async () => {
    const { app, addShop, ...alpha } = await testShop();
    const beta = await addShop("beta.myshopify.com");
    for (const { shop } of [alpha, beta])
      await apply(app, shop, [subscription(1), subscription(2), order(1, 1), order(1, 2)]);
    const cursorOf = async (resource: string, { get }: Pick<typeof alpha, "get"> = alpha) =>
      ((await (await get(`/api/v1/${resource}?limit=1`)).json()) as PageBody).page.nextCursor ?? "";
    const own = await cursorOf("subscriptions");
    const [date, id] = own.split("~");

    const bad = [
      "",
      "x",
      await cursorOf("subscriptions", beta),
      (await alpha.get("/api/v1/subscriptions")).headers.get("x-checkpoint") ?? "",
      `${date}~sub_${"a".repeat(24)}`,
      `2026-01-01T00:00:00.001Z~${id}`,
      `2026-02-30T00:00:00.000Z~${id}`,
      `${own} `,
      own.replace("~", "%7E%7E"),
      "\u0000",
      "9".repeat(10_000),
    ];
    for (const cursor of bad) {
      const response = await alpha.get(`/api/v1/subscriptions?cursor=${encodeURIComponent(cursor)}`);
      expect([cursor, await answerOf(response)]).toEqual([cursor, BAD_CURSOR]);
    }
    const ofOrders = await alpha.get(`/api/v1/subscriptions?cursor=${encodeURIComponent(await cursorOf("orders"))}`);
    expect(await answerOf(ofOrders)).toEqual(
      badCursor("other_resource", "The cursor is from another resource. Pass nextCursor on to the list that gave it."),
    );
    expect((await alpha.get("/api/v1/subscriptions?cursor=%")).status).toBe(400);
    expect((await alpha.get(`/api/v1/subscriptions?cursor=${encodeURIComponent(own)}`)).status).toBe(200);
    expect((await alpha.get(`/api/v1/subscriptions?cursor=${own}`)).status).toBe(200);
    expect((await alpha.get(`/api/v1/subscriptions?cursor=x&cursor=${own}`)).status).toBe(200);
    expect((await alpha.get(`/api/v1/subscriptions?cursor=${own}&cursor=`)).status).toBe(400);
  });
});
