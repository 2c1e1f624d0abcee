import { describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { Customer, Order, Subscription } from "../../src/domain/resources.ts";
import { ApiKeyAuthenticator } from "../../src/http/api-key-authenticator.ts";
import { createLog } from "../../src/log.ts";
import { StoreError } from "../../src/store/store-error.ts";
import { apply, type PageBody, START, testApp } from "../support/app.ts";
import { customer, gid, order, subscription } from "../support/records.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NOT_FOUND = { error: { code: "not_found", message: "There is nothing here. The API has /api/v1/subscriptions, /api/v1/customers, /api/v1/orders." } };
const NOT_ALLOWED = { error: { code: "method_not_allowed", message: "Only GET is allowed here." } };
const UNAUTHORIZED = { error: { code: "unauthorized", message: "Send a valid API key as `Authorization: Bearer cad_pk_...`." } };
const BAD_CURSOR = {
  error: { code: "bad_cursor", message: "The cursor is not one that this resource's pages gave. Pass nextCursor on as it came, URL-encoded." },
};

/** Status, headers and whole body; the request id is looked at and left out, for it is another each time. */
async function answer(response: Response) {
  const headers = Object.fromEntries([...response.headers].filter(([name]) => name !== "x-request-id"));
  expect(response.headers.get("x-request-id")).toMatch(UUID);
  const text = await response.text();
  return { status: response.status, headers, body: text === "" ? "" : JSON.parse(text) };
}

const errorHeaders = { "content-type": "application/json", "x-content-type-options": "nosniff", "cache-control": "no-store", vary: "Authorization" };
const pageHeaders = { ...errorHeaders, "cache-control": "private, no-cache" };

describe("method before path before key before plan before query", () => {
  test.each(["HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])("%s", async (method) => {
    const { request } = await testApp();
    for (const path of ["/api", "/api/", "/api/v1", "/api/v1/orders", "/api/v1/orders?cursor=x", "/api/v9/nothing"]) {
      const { status, headers, body } = await answer(await request(path, { method }));
      expect({ status, headers }).toEqual({ status: 405, headers: { ...errorHeaders, allow: "GET" } });
      // app.handle gives HEAD its body; on a socket there is none (flow/read.test.ts).
      expect(body).toEqual(NOT_ALLOWED);
    }
  });

  test.each([
    "/api",
    "/api/",
    "/api/v1",
    "/api/v1/",
    "/api/v2/orders",
    "/api/v1/subscriptions/",
    "/api/v1/Orders",
    "/api/v1/%6frders",
    "/api//v1/orders",
    "/api/v1/orders/1",
    "/api/v1/orders;x",
    "/",
    "/nothing",
    "/apis",
    "//api/v1/orders",
  ])("GET %s is nowhere, with or without a key", async (path) => {
    const { addShop, request } = await testApp();
    const { get } = await addShop();
    const expected = { status: 404, headers: errorHeaders, body: NOT_FOUND };
    expect(await answer(await request(path))).toEqual(expected);
    expect(await answer(await get(path))).toEqual(expected);
  });

  test("no key, a wrong one, a revoked one and a malformed header look alike", async () => {
    const { app, addShop, request, clock } = await testApp();
    const { shop, key, keyId } = await addShop();
    await app.store.keys.revoke(shop.id, keyId, clock.now());
    const expected = { status: 401, headers: { ...errorHeaders, "www-authenticate": "Bearer" }, body: UNAUTHORIZED };
    const unknown = `Bearer cad_pk_${"0".repeat(48)}`;
    for (const authorization of [undefined, "", unknown, `Bearer ${key}`, `Bearer  ${key}`, `Token ${key}`, key, "Bearer", "Bearer \u00ff"]) {
      const headers = authorization === undefined ? {} : { Authorization: authorization };
      expect(await answer(await request("/api/v1/orders?cursor=bad", { headers }))).toEqual(expected);
    }
  });

  test.each([
    ["free", 403],
    ["free+addon", 200],
    ["pro", 200],
  ] as const)("on plan %s: %i", async (plan, status) => {
    const { addShop } = await testApp();
    const { get } = await addShop("alpha.myshopify.com", plan);
    const response = await answer(await get(`/api/v1/orders${status === 403 ? "?cursor=bad" : ""}`));
    const message = "This shop's plan has no API access: it comes with the Pro plan, and with the Free plan through the API and webhooks add-on.";
    if (status === 403) expect(response).toEqual({ status, headers: errorHeaders, body: { error: { code: "plan_required", message } } });
    else expect(response).toEqual({ status, headers: pageHeaders, body: { data: [], page: { limit: 50, nextCursor: null } } });
  });
});

test.each(["x", "sds", "[::1]", "a.example", "sds:8080"])("the API is there under the host %s", async (host) => {
  const { app, addShop } = await testApp();
  const { key } = await addShop();
  const response = await app.handle(new Request(`http://${host}/api/v1/orders`, { headers: { Authorization: `Bearer ${key}` } }));
  expect(response.status).toBe(200);
});

describe("a page", () => {
  test("of subscriptions, customers and orders has the fields of service.md in their order, and no more", async () => {
    const { app, addShop } = await testApp();
    const { shop, get } = await addShop();
    const profile = { email: "ada@example.com", firstName: "Ada", lastName: "Abe", marketingConsent: true, creditsCents: 5, loyaltyTier: 1 };
    await apply(app, shop, [customer(1, profile), subscription(1), order(1, 1)]);
    const rows = async (resource: string) => ((await (await get(`/api/v1/${resource}`)).json()) as PageBody).data;
    const [subscriptionRow] = await rows("subscriptions");
    const [customerRow] = await rows("customers");
    const [orderRow] = await rows("orders");

    expect(Object.keys(subscriptionRow ?? {})).toEqual(Object.keys(Subscription.properties));
    expect(Object.keys(customerRow ?? {})).toEqual(Object.keys(Customer.properties));
    expect(Object.keys(orderRow ?? {})).toEqual(Object.keys(Order.properties));
    expect([Value.Check(Subscription, subscriptionRow), Value.Check(Customer, customerRow), Value.Check(Order, orderRow)]).toEqual([true, true, true]);

    const { type: _type, customer: _customer, ...given } = subscription(1);
    expect(subscriptionRow).toEqual({ ...given, id: subscriptionRow?.["id"], customerId: customerRow?.["id"], cyclesCompleted: 1, cancelledAt: null });
    expect(customerRow).toEqual({
      id: customerRow?.["id"],
      shopifyId: gid.customer(1),
      ...profile,
      subscriptionCount: 1,
      createdAt: "2026-03-01T12:00:00.000Z",
    });
    expect(orderRow).toMatchObject({ contractId: subscriptionRow?.["id"], customerId: customerRow?.["id"], cycleNumber: 1, totalCents: 1900 });
  });

  test("is newest first, rows of one date by id, descending", async () => {
    const { app, addShop } = await testApp();
    const { shop, all } = await addShop();
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
    ["LIMIT=3", 50],
    ["other=1&limit=3&shop=beta.myshopify.com", 3],
  ])("?%s has limit %i", async (query, limit) => {
    const { addShop } = await testApp();
    const { get } = await addShop();
    expect(await answer(await get(`/api/v1/customers?${query}`))).toEqual({
      status: 200,
      headers: pageHeaders,
      body: { data: [], page: { limit, nextCursor: null } },
    });
  });

  test.each([1, 2, 3, 4, 5, 50])("of %i of 4 rows says whether another follows", async (limit) => {
    const { app, addShop } = await testApp();
    const { shop, get } = await addShop();
    await apply(
      app,
      shop,
      [1, 2, 3, 4].map((n) => customer(n, { firstName: `,{"id":"${n}"`, lastName: '"createdAt":"' })),
    );
    const { data, page } = (await (await get(`/api/v1/customers?limit=${limit}`)).json()) as PageBody;
    const last = data.at(-1);
    expect(data).toHaveLength(Math.min(limit, 4));
    expect(page).toEqual({ limit, nextCursor: limit < 4 ? `${last?.["createdAt"]}~${last?.["id"]}` : null });
  });
});

describe("a cursor", () => {
  test("that this resource's pages did not give this shop is bad", async () => {
    const { app, addShop } = await testApp();
    const alpha = await addShop("alpha.myshopify.com");
    const beta = await addShop("beta.myshopify.com");
    for (const { shop } of [alpha, beta]) await apply(app, shop, [subscription(1), subscription(2), order(1, 1), order(1, 2)]);
    const cursorOf = async (resource: string, { get } = alpha) => ((await (await get(`/api/v1/${resource}?limit=1`)).json()) as PageBody).page.nextCursor ?? "";
    const own = await cursorOf("subscriptions");
    const [date, id] = own.split("~");

    const bad = [
      "",
      "x",
      await cursorOf("orders"),
      await cursorOf("subscriptions", beta),
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
      expect(await answer(response)).toEqual({ status: 400, headers: errorHeaders, body: BAD_CURSOR });
    }
    expect((await alpha.get("/api/v1/subscriptions?cursor=%")).status).toBe(400);
    expect((await alpha.get(`/api/v1/subscriptions?cursor=${encodeURIComponent(own)}`)).status).toBe(200);
    expect((await alpha.get(`/api/v1/subscriptions?cursor=${own}`)).status).toBe(200);
    expect((await alpha.get(`/api/v1/subscriptions?cursor=x&cursor=${own}`)).status).toBe(200);
    expect((await alpha.get(`/api/v1/subscriptions?cursor=${own}&cursor=`)).status).toBe(400);
  });
});

describe("last use of a key", () => {
  test("is written at first use, then at most once a minute, and at shutdown", async () => {
    const { app, clock, log, store, writes } = await keyringApp();
    const authenticator = new ApiKeyAuthenticator(store, clock.now, log);
    const use = async (after: number) => {
      clock.ms = START + after;
      await authenticator.authenticate(app.header);
      await authenticator.writeUses();
    };
    for (const after of [0, 30_000, 60_500, 61_500, 120_400, 120_500]) await use(after);
    expect(writes.map((at) => at - START)).toEqual([0, 60_500, 120_500]);
    clock.ms = START + 130_000;
    await authenticator.authenticate(app.header);
    await authenticator.writeUses({ all: true });
    expect(writes.at(-1)).toBe(START + 130_000);
  });

  test("that cannot be written is logged, and does not stand in the way of the answer", async () => {
    const { addShop, app, logged } = await testApp();
    const { get } = await addShop();
    app.store.keys.touch = async () => {
      throw new Error("database is locked");
    };
    expect((await get("/api/v1/orders")).status).toBe(200);
    expect(logged.join("")).toContain("cannot write when keys were last used");
  });
});

/** A key in a real store whose writes of last uses are noted by when they are made. */
async function keyringApp() {
  const { app, addShop, clock } = await testApp();
  const { key } = await addShop();
  const writes: number[] = [];
  const { touch } = app.store.keys;
  const store = {
    ...app.store.keys,
    touch: async (uses: ReadonlyMap<string, number>) => {
      writes.push(clock.ms);
      await touch(uses);
    },
  };
  return { app: { header: `Bearer ${key}` }, clock, log: createLog("error", { write: () => undefined }, clock.now), store, writes };
}

test("an unexpected failure is 500 with no detail in the body, and the detail in the log under the request id", async () => {
  const { app, addShop, logged } = await testApp();
  const { get } = await addShop();
  app.store.pages.list = async () => {
    throw new Error("disk I/O error at bob@example.com");
  };
  const response = await get("/api/v1/orders");
  const requestId = response.headers.get("x-request-id") ?? "";
  expect(await answer(response)).toEqual({
    status: 500,
    headers: errorHeaders,
    body: { error: { code: "internal", message: "Something went wrong on our side. It is safe to try again." } },
  });
  const line = logged.find((text) => text.includes(requestId)) ?? "";
  expect(line).toContain("disk I/O error at [redacted]");
});

test("a database that another process holds locked is 503 and not our failure", async () => {
  const { app, addShop, logged } = await testApp();
  const { intake } = await addShop();
  app.store.mirror.applyRecords = async () => {
    throw new StoreError("busy", new Error("database is locked"));
  };
  const response = await intake([]);
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(logged.join("")).not.toContain('"level":"error"');
});

test.each([
  ["GET", "/healthz", 200],
  ["GET", "/readyz", 200],
  ["POST", "/healthz", 405],
  ["GET", "/intake", 405],
  ["DELETE", "/platform/webhooks", 405],
])("%s %s is %i", async (method, path, status) => {
  const { request } = await testApp();
  const response = await request(path, { method });
  expect(response.status).toBe(status);
  if (status === 200) expect(await response.json()).toEqual({ status: "ok" });
  else expect(response.headers.get("allow")).not.toBeNull();
});

test("readyz is 503 with a failed database, and while stopping", async () => {
  const { app, request, clock } = await testApp();
  const { check } = app.store;
  app.store.check = async () => {
    throw new Error("disk full");
  };
  expect((await request("/readyz")).status).toBe(503);
  app.store.check = check;
  clock.ms += 1_000;
  expect((await request("/readyz")).status).toBe(200);
  await app.stop();
  expect(await (await request("/readyz")).json()).toEqual({ error: { code: "unavailable", message: "The program is stopping." } });
});
