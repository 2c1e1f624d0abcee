import { describe, expect, test } from "bun:test";
import { customerId, subscriptionId } from "../../src/domain/ids.ts";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import type { Shop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { receiveFailed } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { customer, gid, order, subscription } from "../support/records.ts";
import { led, signedIn } from "../support/signed-in.ts";
import { visit } from "../support/visitor.ts";
import { textIn, textOf } from "./page-parts.ts";

const BROWSE = "/admin/data/browse";
const DOMAIN = "alpha.myshopify.com";

describe("data requests", () => {
  const REQUESTS = "/admin/data/requests";
  const DAY = 86_400_000;

  async function asking(store: Store, shop: Shop, ...people: number[]): Promise<void> {
    const dataRequests = people.map((n) => dataRequest(String(n), gid.customer(n), START));
    await store.mirror.applyRecords([{ shop, records: [], dataRequests }], START, []);
  }

  test("are listed with their due dates, until they are marked as answered", async () => {
    const { all, html, post, store, shop } = await signedIn();
    expect(textIn(await html(REQUESTS), "no-requests")).toBe("No customer waits for an answer.");
    await asking(store, shop, 7);
    expect(textIn(await html(REQUESTS), "data-requests")).toContain("Customer 7 just now due in 30 days, 2026-03-31");
    all.clock.ms += 25 * DAY;
    const visitor = await visit(all, shop);
    expect(await visitor.html(REQUESTS)).toContain('<span class="retrying">due in 5 days');
    all.clock.ms += 6 * DAY;
    const later = await visit(all, shop);
    expect(textIn(await later.html(REQUESTS), "data-requests")).toContain("overdue since 2026-03-31");
    expect(textOf(await later.html(`${REQUESTS}/7/answered`))).toContain("Did customer 7 get the data?");
    const answer = () => later.post(`${REQUESTS}/7/answered`, { once: crypto.randomUUID() });
    expect(led(await answer())).toEqual([303, REQUESTS]);
    expect(await later.html(REQUESTS)).toContain("The request of customer 7 is marked as answered.");
    expect((await answer()).status).toBe(404);
    expect((await later.get(`${REQUESTS}/7/answered`)).status).toBe(404);
    expect((await post(`${REQUESTS}/7/answered`)).status).not.toBe(303);
  });

  test("the export is a file with everything that is stored about the customer", async () => {
    const { all, get, post, store, shop } = await signedIn();
    await apply(all.app, shop, [customer(7, { firstName: "Ada\u202e</script>" }), subscription(7), order(7, 1)]);
    await asking(store, shop, 7);
    const answer = await post(`${REQUESTS}/7/export`);
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "content-disposition": 'attachment; filename="customer-7.json"',
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    });
    const text = await answer.text();
    expect(text).not.toContain("\u202e");
    const stored: unknown = await store.people.export(shop, gid.customer(7));
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(stored)));
    // Only the form exports. A GET must not export, because browsers may prefetch an address.
    expect(led(await get(`${REQUESTS}/7/export`))).toEqual([303, REQUESTS]);
  });

  test("another shop's customers are not found, and a forged form exports nothing", async () => {
    const { all, post, store } = await signedIn();
    const beta = await all.addShop("beta.myshopify.com");
    await apply(all.app, beta.shop, [customer(7), subscription(7)]);
    await asking(store, beta.shop, 7);
    for (const id of ["7", "0", "07", "x", "9".repeat(21)])
      for (const form of ["export", "answered"])
        expect({ id, form, status: (await post(`${REQUESTS}/${id}/${form}`)).status }).toEqual({
          id,
          form,
          status: 404,
        });
    expect(await store.dataRequests.open(beta.shop.id)).toHaveLength(1);
    const theirs = await visit(all, beta.shop);
    expect((await theirs.post(`${REQUESTS}/7/export`, { csrf: "x" })).status).toBe(403);
    expect((await theirs.post(`${REQUESTS}/7/export`)).status).toBe(200);
  });
});

test("the audit list has each look at a person, each export, answer and retry, and nothing else", async () => {
  const { all, get, post, store, shop } = await signedIn();
  await apply(all.app, shop, [customer(7), subscription(7), order(7, 1)]);
  await store.mirror.applyRecords(
    [{ shop, records: [], dataRequests: [dataRequest("1", gid.customer(7), START)] }],
    START,
    [],
  );
  await receiveFailed(store, shop);
  const [item] = await store.inbox.list(shop.id, { limit: 1 });
  const ids = { customer: customerId(DOMAIN, gid.customer(7)), contract: subscriptionId(DOMAIN, gid.contract(7)) };
  const entries = async () =>
    (await store.audit.list(shop.id, {}, {}, 99)).filter(({ action }) => action !== "session.begun");
  // Lists, and rows without personal data, add no entry to the audit list.
  for (const path of ["", "?resource=customers", `?find=${ids.customer}`, `/${ids.contract}`, "/cus_x"])
    await get(`${BROWSE}${path}`);
  await get("/admin/data/requests");
  expect(await entries()).toEqual([]);
  await get(`${BROWSE}/${ids.customer}`);
  await get(`${BROWSE}/${ids.contract}?include=customFields`);
  await post("/admin/data/requests/7/export");
  await post("/admin/data/requests/8/export");
  await post("/admin/data/requests/7/answered");
  await post("/admin/data/requests/7/answered");
  await post(`/admin/data/inbox/${item?.number}/retry`);
  const found = (await entries()).toReversed();
  expect(found.map(({ action, subject }) => [action, subject])).toEqual([
    ["person.shown", gid.customer(7)],
    ["person.shown", gid.contract(7)],
    ["person.exported", gid.customer(7)],
    ["person.answered", gid.customer(7)],
    ["item.retried", String(item?.number)],
  ]);
  for (const { who, from } of found)
    expect({ who, from }).toEqual({ who: expect.stringMatching(/^session /), from: expect.any(String) });
});
