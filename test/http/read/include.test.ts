import { describe, expect, test } from "bun:test";
import { addField, archiveField, restoreField } from "../../../src/domain/fields/definition.ts";
import { customerId, subscriptionId } from "../../../src/domain/ids.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { type Answer, answerOf, page, refusal, success } from "../../support/answer.ts";
import { apply, type PageBody, randomBytes, START, testShop } from "../../support/app.ts";
import { customer, fieldValue, gid, order, subscription } from "../../support/records.ts";

const DOMAIN = "alpha.myshopify.com";
const LIST = "/api/v1/subscriptions";
const SINCE = "updatedSince=2026-01-01T00:00:00Z";
const PARAMETERS = "limit, cursor, since, updatedSince, shopifyId, customerId, status, include";
const ROW = { "cache-control": "private, no-cache", vary: "Authorization" };
const rowOf = (n: number) => `${LIST}/${encodeURIComponent(gid.contract(n))}`;
const ONE = rowOf(1);

/** A row as the API returns it without `include`. */
function stored(n: number) {
  const { type: _, shopifyId, customer: __, startedAt, ...rest } = subscription(n);
  const ids = { id: subscriptionId(DOMAIN, shopifyId), shopifyId, customerId: customerId(DOMAIN, gid.customer(n)) };
  return { ...ids, ...rest, cyclesCompleted: n === 1 ? 1 : 0, startedAt, cancelledAt: null };
}

const CUSTOM_FIELDS = [{ tier: 2, note: "Hi" }, {}, { note: "Ho" }];
const withFields = (n: number) => ({ ...stored(n), customFields: CUSTOM_FIELDS[n - 1] });
const sorted = <T extends { id: string }>(rows: T[]) => rows.toSorted((a, b) => (a.id < b.id ? 1 : -1));

/** A shop with three subscriptions; the first and the third have custom fields. */
async function filledShop(...arguments_: Parameters<typeof testShop>) {
  const all = await testShop(...arguments_);
  const { app, shop } = all;
  await app.store.fields.update(shop.id, (fields) => addField(fields, { key: "tier", label: "Tier", type: "number" }));
  await app.store.fields.update(shop.id, (fields) => addField(fields, { key: "note", label: "Note", type: "text" }));
  await apply(app, shop, [subscription(1), subscription(2), subscription(3), order(1, 1)]);
  await apply(app, shop, [fieldValue(1, "note", "Hi"), fieldValue(1, "tier", 2), fieldValue(3, "note", "Ho")]);
  const answer = async (path: string, headers?: Record<string, string>) => answerOf(await all.get(path, headers));
  return { ...all, answer };
}

const compressible = (data: unknown[]): Answer => {
  const { headers, ...rest } = page(data, 50, null);
  return { ...rest, headers: { ...headers, vary: "Authorization, Accept-Encoding" } };
};

describe("include=customFields", () => {
  test.each([
    ["the list", "include=customFields", sorted([1, 2, 3].map(withFields))],
    ["a filtered list", `customerId=${gid.customer(1)}&include=customFields`, [withFields(1)]],
    ["changes", `${SINCE}&include=customFields`, [2, 1, 3].map(withFields)],
    ["filtered changes", `include=customFields&${SINCE}&status=ACTIVE`, [2, 1, 3].map(withFields)],
  ])("adds the values at the end of each row of %s", async (_name, query, rows) => {
    const { answer, get } = await filledShop();
    const answered = await answer(`${LIST}?${query}`);
    expect(answered).toEqual(rows.length === 1 ? page(rows, 50, null) : compressible(rows));
    const text = await (await get(`${LIST}?${query}`)).text();
    expect(text).toStartWith(`{"data":[${rows.map((row) => JSON.stringify(row)).join(",")}],`);
  });

  test("adds the values to one row, by its gid and by its id", async () => {
    const { answer, get } = await filledShop();
    for (const path of [ONE, `${LIST}/${stored(1).id}`])
      expect(await answer(`${path}?include=customFields`)).toEqual(success(200, withFields(1), ROW));
    expect(await (await get(`${ONE}?include=customFields`)).text()).toBe(JSON.stringify(withFields(1)));
    expect(await answer(`${rowOf(2)}?include=customFields`)).toEqual(success(200, withFields(2), ROW));
  });

  test("is what adds them: without it, every answer has the stored rows", async () => {
    const { answer, get } = await filledShop();
    const rows = sorted([1, 2, 3].map(stored));
    for (const query of ["", "?limit=50", "?colour=red"])
      expect(await answer(`${LIST}${query}`)).toEqual(compressible(rows));
    expect(await answer(`${LIST}?${SINCE}`)).toEqual(compressible([2, 1, 3].map(stored)));
    expect(await (await get(ONE)).text()).toBe(JSON.stringify(stored(1)));
  });

  test("is kept in the link to the next page, and its cursors and checkpoints go with requests without it", async () => {
    const { get } = await filledShop();
    for (const order of ["", `&${SINCE}`]) {
      const plain = await get(`${LIST}?limit=1${order}`);
      const shown = await get(`${LIST}?limit=1${order}&include=customFields`);
      const { page: plainPage } = (await plain.json()) as PageBody;
      const { page: shownPage } = (await shown.json()) as PageBody;
      expect(shown.headers.get("x-checkpoint")?.slice(24)).toBe(plain.headers.get("x-checkpoint")?.slice(24) ?? "");
      expect(shownPage.nextCursor).toBe(plainPage.nextCursor);
      const cursor = encodeURIComponent(shownPage.nextCursor ?? "");
      const next = `${LIST}?limit=1${order}&include=customFields&cursor=${cursor}`;
      expect(shown.headers.get("link")).toBe(`<${next}>; rel="next"`);
      const second = (await (await get(next)).json()) as PageBody;
      const { customFields, ...row } = second.data[0] ?? {};
      expect(customFields).toBeDefined();
      expect(((await (await get(next.replace("&include=customFields", ""))).json()) as PageBody).data).toEqual([row]);
    }
  });

  test("shows a changed value to whoever asks for the changes since a checkpoint of either form", async () => {
    const { app, shop, get } = await filledShop();
    const checkpoints = await Promise.all(
      ["", "&include=customFields"].map(
        async (more) => (await get(`${LIST}?limit=1${more}`)).headers.get("x-checkpoint") ?? "",
      ),
    );
    await apply(app, shop, [fieldValue(2, "tier", 7)]);
    for (const checkpoint of checkpoints) {
      const changes = await get(`${LIST}?since=${encodeURIComponent(checkpoint)}&include=customFields`);
      expect(((await changes.json()) as PageBody).data).toEqual([{ ...stored(2), customFields: { tier: 7 } }]);
    }
  });
});

describe("the ETag of an answer with custom fields", () => {
  const PATHS = [
    `${LIST}?include=customFields`,
    `${LIST}?${SINCE}&include=customFields`,
    `${ONE}?include=customFields`,
  ];

  test("covers the values, and is not the tag of the answer without them", async () => {
    const { app, shop, get } = await filledShop();
    for (const path of PATHS) {
      const tag = (await get(path)).headers.get("etag") ?? "";
      expect((await get(path, { "If-None-Match": tag })).status).toBe(304);
      expect((await get(path.replace(/[?&]include=customFields/, ""), { "If-None-Match": tag })).status).toBe(200);
      await apply(app, shop, [fieldValue(1, "tier", Math.random())]);
      expect((await get(path, { "If-None-Match": tag })).status).toBe(200);
    }
  });

  test("ends when another process archives a field, and when it brings the field back", async () => {
    const { shop, folder, get } = await filledShop();
    const other = await openStore({
      folder: `${folder}/data`,
      masterKeyFile: `${folder}/data/master.key`,
      busyTimeoutMs: 2_000,
      now: () => START,
      random: randomBytes,
      upgradeAlone: false,
      server: null,
    });
    const fieldsOf = async (path: string) => {
      const body = (await (await get(path)).json()) as PageBody & { customFields?: object };
      return body.customFields ?? body.data.find(({ shopifyId }) => shopifyId === gid.contract(1))?.["customFields"];
    };
    for (const path of PATHS) {
      const tag = (await get(path)).headers.get("etag") ?? "";
      expect([(await get(path, { "If-None-Match": tag })).status, await fieldsOf(path)]).toEqual([
        304,
        { tier: 2, note: "Hi" },
      ]);
      await other.fields.update(shop.id, (fields) => archiveField(fields, "note", START));
      const archived = await get(path, { "If-None-Match": tag });
      expect([archived.status, await fieldsOf(path)]).toEqual([200, { tier: 2 }]);
      await other.fields.update(shop.id, (fields) => restoreField(fields, "note"));
      const restored = await get(path, { "If-None-Match": archived.headers.get("etag") ?? "" });
      expect([restored.status, await fieldsOf(path)]).toEqual([200, { tier: 2, note: "Hi" }]);
    }
    await other.close();
  });
});

describe("an include that is wrong is refused:", () => {
  const CUSTOMER = `/api/v1/customers/${encodeURIComponent(gid.customer(1))}`;
  const ORDER = `/api/v1/orders/${encodeURIComponent(gid.order(1001))}`;
  const there = (name: string, why: string) => `There is no parameter "${name}": ${why}.`;
  const CUSTOMERS = "customers have the parameters limit, cursor, since, updatedSince, shopifyId";
  const ORDERS =
    "orders have the parameters limit, cursor, since, updatedSince, shopifyId, customerId, contractId, status";
  const spelt = (name: string) => there(name, "it is spelt include");
  const none = (name: string) => there(name, "this address has no parameters");

  test.each([
    [LIST, "include=customFields&include=customFields", "The parameter include is given more than once."],
    [ONE, "include=customFields&include=customFields", "The parameter include is given more than once."],
    [LIST, `${SINCE}&include=`, 'The parameter include is "": it must be customFields.'],
    [LIST, "include=customfields", 'The parameter include is "customfields": it must be customFields.'],
    [LIST, "include=customFields,lines", 'The parameter include is "customFields,lines": it must be customFields.'],
    [ONE, "include=lines", 'The parameter include is "lines": it must be customFields.'],
    ...["Include", "includes", "includes[]", "include[]", "in_clude", "inclde", "unclude"].flatMap((name) => [
      [LIST, `${name}=customFields`, spelt(name)],
      [ONE, `${name}=customFields`, spelt(name)],
    ]),
    ["/api/v1/customers", "include=customFields", there("include", CUSTOMERS)],
    ["/api/v1/customers", "Includes=customFields", there("Includes", CUSTOMERS)],
    ["/api/v1/orders", "include=customFields", there("include", ORDERS)],
    [CUSTOMER, "include=customFields", none("include")],
    [ORDER, "include=customFields", none("include")],
    [ORDER, "Include=customFields", none("Include")],
  ])("%s?%s", async (path = "", query = "", message = "") => {
    const { app, shop, answer } = await filledShop();
    await apply(app, shop, [customer(1)]);
    expect(await answer(`${path}?${query}`)).toEqual(refusal(400, "bad_parameter", message));
  });

  test("other parameters of one row are ignored, unless the request is strict", async () => {
    const { answer } = await filledShop();
    const strict = { Prefer: "handling=strict" };
    expect(await answer(`${ONE}?limit=3&colour=red`)).toEqual(success(200, stored(1), ROW));
    expect(await answer(`${ONE}?include=customFields`, strict)).toEqual(success(200, withFields(1), ROW));
    expect(await answer(`${LIST}?colour=red`, strict)).toEqual(
      refusal(400, "bad_parameter", there("colour", `subscriptions have the parameters ${PARAMETERS}`)),
    );
    expect(await answer(`${ONE}?include=customFields&limit=3`, strict)).toEqual(
      refusal(400, "bad_parameter", there("limit", "one row has only include")),
    );
  });

  test("after the key and the plan are checked", async () => {
    const { request, get } = await filledShop({}, "free");
    for (const path of [LIST, ONE]) {
      expect((await request(`${path}?include=lines`)).status).toBe(401);
      expect((await get(`${path}?include=lines`)).status).toBe(403);
    }
  });
});

test.each([
  ["limits", "limit"],
  ["cursr", "cursor"],
  ["customer_ids", "customerId"],
  ["statu", "status"],
])("another parameter that is one letter off is refused too: %s", async (name, right) => {
  const { answer } = await filledShop();
  expect(await answer(`${LIST}?${name}=1`)).toEqual(
    refusal(400, "bad_parameter", `There is no parameter "${name}": it is spelt ${right}.`),
  );
});
