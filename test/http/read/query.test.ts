import { describe, expect, test } from "bun:test";
import { customerId, orderId, subscriptionId } from "../../../src/domain/ids.ts";
import { answerOf, NOT_FOUND, refusal, success, UNAUTHORIZED } from "../../support/answer.ts";
import { apply, type PageBody, testShop } from "../../support/app.ts";
import { exchange, parse } from "../../support/raw-http.ts";
import { customer, gid, order, subscription } from "../../support/records.ts";

const DOMAIN = "alpha.myshopify.com";
const ids = {
  customer: customerId(DOMAIN, gid.customer(1)),
  subscription: subscriptionId(DOMAIN, gid.contract(1)),
  order: orderId(DOMAIN, gid.contract(1), "recurring", 2),
};

const STATUSES = "PENDING, PAID, RECOVERED, FAILED, UNCOLLECTIBLE, SKIPPED";
const PARAMETERS = "customers have the parameters limit, cursor, since, updatedSince, shopifyId.";

function requestOf(target: string, key: string): string {
  return `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`;
}

async function filledShop(env: Record<string, string> = {}) {
  const all = await testShop(env);
  const orders = [order(1, 1), order(1, 2, { status: "FAILED" }), order(2, 1)];
  await apply(all.app, all.shop, [customer(1), subscription(1), subscription(2, { status: "PAUSED" }), ...orders]);
  return all;
}

describe("a filter", () => {
  test.each([
    ["customers", `shopifyId=${gid.customer(2)}`, 1],
    ["customers", `shopifyId=${ids.customer}`, 1],
    ["customers", `shopifyId=${gid.customer(99)}`, 0],
    ["subscriptions", `shopifyId=${gid.contract(1)}`, 1],
    ["subscriptions", `customerId=${gid.customer(1)}`, 1],
    ["subscriptions", `customerId=${ids.customer}&status=ACTIVE`, 1],
    ["subscriptions", `customerId=${ids.customer}&status=PAUSED`, 0],
    ["subscriptions", "status=EXPIRED", 0],
    ["orders", `contractId=${gid.contract(1)}`, 2],
    ["orders", `contractId=${ids.subscription}&status=PAID`, 1],
    ["orders", `customerId=${encodeURIComponent(gid.customer(1))}`, 2],
    ["orders", `shopifyId=${gid.order(1001)}`, 1],
    ["orders", `shopifyId=${ids.order}`, 1],
    ["orders", `shopifyId=${gid.order(1001)}&contractId=${gid.contract(2)}`, 0],
    ["orders", "status=PAID&status=FAILED", 3],
    ["orders", "status=FAILED&status=SKIPPED&status=FAILED", 1],
    ["orders", `status=FAILED&contractId=${gid.contract(2)}&status=SKIPPED`, 0],
    ["subscriptions", "status=PAUSED&status=ACTIVE&status=CANCELLED&status=PAYMENT_FAILED&status=EXPIRED", 2],
    ["customers", "utm_source=mail&utm_medium=x&ref=1&v=2&_=3&fields=id&trace=4&colour=red&colour=blue", 2],
  ])("of %s: %s lets through %d", async (resource, query, count) => {
    const { get } = await filledShop();
    const response = await get(`/api/v1/${resource}?${query}`);
    expect([response.status, ((await response.json()) as PageBody).data.length]).toEqual([200, count]);
  });

  test("is kept in the link to the next page", async () => {
    const { get } = await filledShop();
    const first = await get("/api/v1/orders?limit=1&status=PAID");
    const { data } = (await first.json()) as PageBody;
    const link = /<(\/api\/v1\/orders\?limit=1&status=PAID&cursor=.*)>; rel="next"/.exec(
      first.headers.get("link") ?? "",
    );
    const second = (await (await get(link?.[1] ?? "")).json()) as PageBody;
    expect([data.length, second.data.length, second.page.nextCursor]).toEqual([1, 1, null]);
    expect(second.data[0]?.["id"]).not.toBe(data[0]?.["id"]);
  });

  test("is kept in the link, which is absolute where SDS_PUBLIC_URL is set", async () => {
    const { get } = await filledShop({ SDS_PUBLIC_URL: "https://sds.example.com/" });
    for (const query of ["status=PAID", "updatedSince=2026-01-01T00:00:00Z"])
      expect((await get(`/api/v1/orders?limit=1&${query}`)).headers.get("link")).toStartWith(
        `<https://sds.example.com/api/v1/orders?limit=1&${query}&cursor=`,
      );
  });

  test("is kept in the link also behind a #, which would end the link", async () => {
    const { app, key } = await filledShop();
    const target = "/api/v1/orders?limit=1&x=#y&status=PAID";
    const { headers } = parse(await exchange(await app.start(), requestOf(target, key)));
    expect(headers.get("link")).toStartWith("</api/v1/orders?limit=1&x=%23y&status=PAID&cursor=");
  });

  test("takes the cursors of the whole list, and refuses others", async () => {
    const { get } = await filledShop();
    const { page } = (await (await get("/api/v1/orders?limit=1")).json()) as PageBody;
    const cursor = encodeURIComponent(page.nextCursor ?? "");
    expect((await get(`/api/v1/orders?status=PAID&cursor=${cursor}`)).status).toBe(200);
    expect((await get(`/api/v1/orders?status=PAID&cursor=${cursor.replace(/.$/, "x")}`)).status).toBe(400);
    expect((await get(`/api/v1/subscriptions?status=PAUSED&cursor=${cursor}`)).status).toBe(400);
  });
});

describe("a parameter", () => {
  test.each([
    ["orders", "status=paid", `The parameter status is "paid": it must be one of ${STATUSES}.`],
    ["orders", "status=", `The parameter status is "": it must be one of ${STATUSES}.`],
    [
      "orders",
      "contractId=cus_a",
      'The parameter contractId is "cus_a": it must be the id or the gid of a subscription.',
    ],
    [
      "orders",
      `customerId=${gid.contract(1)}`,
      `The parameter customerId is "${gid.contract(1)}": it must be the id or the gid of a customer.`,
    ],
    ["customers", "shopifyId=7", 'The parameter shopifyId is "7": it must be an id or a gid of customers.'],
    [
      "customers",
      "updatedSince=yesterday",
      'The parameter updatedSince is "yesterday": it must be an ISO 8601 date in UTC, like 2026-01-31T09:30:00Z.',
    ],
    [
      "customers",
      "updated_since=2026-01-01T00:00:00Z",
      'There is no parameter "updated_since": it is spelt updatedSince.',
    ],
    ["customers", "UpdatedSince=x", 'There is no parameter "UpdatedSince": it is spelt updatedSince.'],
    ["customers", "limit[]=3", 'There is no parameter "limit[]": it is spelt limit.'],
    ["customers", "limt=3", 'There is no parameter "limt": it is spelt limit.'],
    ["orders", "stats=PAID", 'There is no parameter "stats": it is spelt status.'],
    ["orders", "status[]=PAID&status[]=FAILED", 'There is no parameter "status[]": it is spelt status.'],
    ["customers", "page_size=3", 'There is no parameter "page_size": use limit.'],
    ["customers", "page[size]=3", 'There is no parameter "page[size]": use limit.'],
    ...["page", "offset", "page[number]", "page[whatever]", "starting_after", "after", "before", "since_id"].map(
      (name) => ["customers", `${name}=2`, `There is no parameter "${name}": use cursor.`] as const,
    ),
    ...[
      "$skip",
      "page.number",
      "pageNo",
      "currentPage",
      "next",
      "continuation_token",
      "marker",
      "last_id",
      " page",
    ].map((name) => ["customers", `${name}=2`, `There is no parameter "${name}": use cursor.`] as const),
    ...["limit", "cursor", "since"].map(
      (name) => ["orders", `amp;${name}=2`, `There is no parameter "amp;${name}": it is spelt ${name}.`] as const,
    ),
    ["orders", "$top=3", 'There is no parameter "$top": use limit.'],
    ["orders", "per_page=3", 'There is no parameter "per_page": use limit.'],
    ["orders", "status_in=PAID", 'There is no parameter "status_in": use status.'],
    ["orders", "order_status=PAID", 'There is no parameter "order_status": use status.'],
    ["subscriptions", "subscription_status=ACTIVE", 'There is no parameter "subscription_status": use status.'],
    ["customers", "status_not=PAID", `There is no parameter "status_not": ${PARAMETERS}`],
    ["customers", "customer_email=a@b.c", `There is no parameter "customer_email": ${PARAMETERS}`],
    ["orders", "ids=1,2", 'There is no parameter "ids": use shopifyId.'],
    ["orders", "state=PAID", 'There is no parameter "state": use status.'],
    ["orders", "customer=1", 'There is no parameter "customer": use customerId.'],
    ["orders", "updated_at_min=1", 'There is no parameter "updated_at_min": use updatedSince.'],
    ["orders", "updated_after=1", 'There is no parameter "updated_after": use updatedSince.'],
    ...[
      "sort",
      "order",
      "email",
      "state",
      "customer",
      "created_at_min",
      "created_after",
      "created[gte]",
      "created_at.gte",
      "processed_at_min",
      "status__in",
      "desc",
      "first_name",
    ].map((name) => ["customers", `${name}=x`, `There is no parameter "${name}": ${PARAMETERS}`] as const),
    ...["shopifyId", "since", "updatedSince"].map(
      (name) => ["customers", `${name}=x&${name}=x`, `The parameter ${name} is given more than once.`] as const,
    ),
    ["orders", "contractId=x&limit=1&contractId=x", "The parameter contractId is given more than once."],
    ["orders", "status=PAID&status=paid", `The parameter status is "paid": it must be one of ${STATUSES}.`],
    ["customers", "status=ACTIVE", `There is no parameter "status": ${PARAMETERS}`],
    ["customers", "since=x&updatedSince=2026-01-01T00:00:00Z", "Send since or updatedSince, not both."],
  ])("of %s that is wrong is refused: %s", async (resource, query, message) => {
    const { get } = await filledShop();
    const answer = await answerOf(await get(`/api/v1/${resource}?${query}`));
    expect(answer).toEqual(refusal(400, "bad_parameter", message));
  });

  test("that is unknown is ignored, but refused if the request is strict", async () => {
    const { get } = await filledShop();
    const refused = refusal(400, "bad_parameter", `There is no parameter "colour": ${PARAMETERS}`);
    const path = "/api/v1/customers?colour=red";
    for (const prefer of ["", "handling=lenient", "respond-async", "x-handling=strict"])
      expect([prefer, (await get(path, { Prefer: prefer })).status]).toEqual([prefer, 200]);
    for (const prefer of ["handling=strict", 'Handling="strict"', "respond-async, handling=strict; x=1"])
      expect([prefer, await answerOf(await get(path, { Prefer: prefer }))]).toEqual([prefer, refused]);
    expect((await get(`/api/v1/customers/${ids.customer}?x=1`, { Prefer: "handling=strict" })).status).toBe(400);
  });
});

describe("one row", () => {
  test.each([
    ["customers", ids.customer, gid.customer(1)],
    ["subscriptions", ids.subscription, gid.contract(1)],
    ["orders", ids.order, gid.order(1002)],
  ])("of %s is found by its id and by its gid", async (resource, id, shopifyId) => {
    const { get, all } = await filledShop();
    const row = (await all(resource)).find((each) => each["id"] === id);
    const expected = success(200, row, { "cache-control": "private, no-cache", vary: "Authorization" });
    for (const name of [id, encodeURIComponent(shopifyId), shopifyId.replaceAll("/", "%2F")])
      expect([name, await answerOf(await get(`/api/v1/${resource}/${name}`))]).toEqual([name, expected]);
  });

  test("is found by its gid with plain slashes, also on a socket, encoded in part, and if a proxy merges the slashes", async () => {
    const { app, get, all, key } = await filledShop();
    const url = await app.start();
    for (const [resource, object] of [
      ["customers", "Customer"],
      ["subscriptions", "SubscriptionContract"],
      ["orders", "Order"],
    ] as const) {
      const number = resource === "orders" ? 1002 : 1;
      const name = `shopify/${object}/${number}`;
      const row = (await all(resource)).find((each) => each["shopifyId"] === `gid://${name}`);
      expect(row).toBeDefined();
      for (const text of [`gid://${name}`, `gid%3A//${name}`, `gid:/${name}`]) {
        const path = `/api/v1/${resource}/${text}`;
        expect([path, await (await get(path)).json()]).toEqual([path, row]);
        const answer = await exchange(url, requestOf(path, key));
        expect([path, await parse(answer).json()]).toEqual([path, row]);
      }
      for (const text of [
        ...[`gid:///${name}`, `gid://${name}/`, `gid://x/../${name}`, `gid:${name}`, `GID://${name}`],
        ...[
          `//gid://${name}`,
          `gid://${name.replace("shopify", "Shopify")}`,
          `gid://${name}/x`,
          "gid://shopify/Shop/1",
        ],
      ])
        expect([text, parse(await exchange(url, requestOf(`/api/v1/${resource}/${text}`, key))).status]).toEqual([
          text,
          404,
        ]);
    }
  });

  test("that the shop does not have is not found, and needs a key", async () => {
    const { get, request, addShop } = await filledShop();
    const other = await addShop("beta.myshopify.com");
    const missing = refusal(404, "not_found", "There are no customers with this id.");
    for (const name of [encodeURIComponent(gid.customer(99)), `cus_${"a".repeat(24)}`])
      expect(await answerOf(await get(`/api/v1/customers/${name}`))).toEqual(missing);
    expect(await answerOf(await other.get(`/api/v1/customers/${ids.customer}`))).toEqual(missing);
    expect(await answerOf(await request(`/api/v1/customers/${ids.customer}`))).toEqual(UNAUTHORIZED);
  });

  test("by a text that is not an id of its resource is an unknown path, even without a key", async () => {
    const { request } = await filledShop();
    const names = [
      "nonsense",
      "cus_a",
      ids.order,
      gid.order(1),
      encodeURIComponent(gid.order(1)),
      "gid%3A%2F%2Fshopify%2FCustomer%2F01",
      "%E0%A4%A",
      `${ids.customer}/`,
      `${ids.customer}/lines`,
    ];
    for (const name of names)
      expect([name, await answerOf(await request(`/api/v1/customers/${name}`))]).toEqual([name, NOT_FOUND]);
    expect((await request(`/api/v1/customers/${ids.customer}`, { method: "POST" })).status).toBe(405);
  });
});
