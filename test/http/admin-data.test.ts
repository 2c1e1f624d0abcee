import { describe, expect, test } from "bun:test";
import { customerId, subscriptionId } from "../../src/domain/ids.ts";
import { generateKey, hashKey } from "../../src/domain/key.ts";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { ASKED_SCOPES as ALL_SCOPES } from "../../src/domain/platform/connection.ts";
import { NO_COUNTS } from "../../src/domain/platform/sync.ts";
import type { Shop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { apiKey, receipt, receiveFailed, TOKENS } from "../conformance/fixtures.ts";
import { apply, randomBytes, START } from "../support/app.ts";
import { customer, gid, line, order, subscription } from "../support/records.ts";
import { applySearched } from "../support/searched.ts";
import { signedIn } from "../support/signed-in.ts";
import { codeOf, linkOf, textIn, textOf } from "./page-parts.ts";

/** The facts of a list, by their names. */
function factsIn(page: string, id: string): Record<string, string> {
  const [list = ""] = new RegExp(`<dl[^>]* id="${id}".*?</dl>`, "s").exec(page) ?? [];
  const found = [...list.matchAll(/<dt>(.*?)<\/dt><dd[^>]*>(.*?)<\/dd>/gs)];
  return Object.fromEntries(found.map(([, name = "", value = ""]) => [name, textOf(value)]));
}

/** The JSON of a row, as the button copies it. */
function jsonIn(page: string): Record<string, unknown> {
  const html = /<code id="json"[^>]*>(.*?)<\/code>/s.exec(page)?.[1] ?? "";
  return JSON.parse(codeOf(html));
}

async function newKey(store: Store, shop: Shop): Promise<string> {
  const key = generateKey(randomBytes);
  await store.keys.add(shop.id, apiKey("key_a"), hashKey(key));
  return key;
}

describe("the summary", () => {
  test("counts the rows, and leads to them", async () => {
    const { all, html, shop } = await signedIn();
    await apply(all.app, shop, [customer(1), customer(2), subscription(1), order(1, 1)]);
    const page = await html("/admin/data");
    expect(factsIn(page, "counts")).toEqual({ Subscriptions: "1 Browse", Customers: "2 Browse", Orders: "1 Browse" });
    expect(page).toContain('href="/admin/data/browse?resource=orders"');
  });

  test("says since when the data is in step, with the last comparison and its corrections", async () => {
    const { all, html, store, shop } = await signedIn();
    await apply(all.app, shop, [subscription(1)]);
    await store.connections.connect(shop.id, "token", TOKENS, [], START);
    await store.syncs.complete(shop.id, "full", START, 1, START);
    await store.syncs.complete(shop.id, "changes", START, 7, START);
    all.clock.ms = START + 40_000;
    expect(textIn(await html("/admin/data"), "verdict")).toStartWith("The shop does not allow the app to use");
    await store.connections.connect(shop.id, "token", TOKENS, ALL_SCOPES, START);
    const page = await html("/admin/data");
    expect(textIn(page, "verdict")).toBe("In step with Shopify 40 s ago, 7 corrections at the last comparison.");
    expect(factsIn(page, "mirror-facts")).toMatchObject({
      Shopify: "connected",
      "Last change from Shopify": "none in the last seven days",
      "Last comparison with Shopify": "40 s ago",
      "Corrections by the last comparison": "7",
    });
    await store.inbox.receive([receipt(shop, "1")], START);
    const later = await html("/admin/data");
    expect(textIn(later, "verdict")).toBe("1 change from Shopify will be processed next.");
    expect(factsIn(later, "mirror-facts")).toMatchObject({
      "Last change from Shopify": "40 s ago",
      "Waiting in the inbox": "1",
      "Failed in the inbox": "0",
    });
  });

  test("says what to do next: connect, load, or look into the inbox", async () => {
    const { all, html, store, shop } = await signedIn();
    const shows = async () => (await html("/admin/data")).match(/id="(empty-mirror|no-subscriptions|loading)"/g);
    expect(await shows()).toEqual(['id="empty-mirror"']);
    expect(textIn(await html("/admin/data"), "empty-mirror")).toContain("Install the app in Shopify's admin");
    await store.connections.connect(shop.id, "token", TOKENS, ALL_SCOPES, START);
    expect(await shows()).toEqual(['id="loading"', 'id="no-subscriptions"']);
    expect(await html("/admin/data")).toContain("begins by itself, in a few seconds.");
    await apply(all.app, shop, [customer(1), subscription(1)]);
    expect(await shows()).toEqual(['id="loading"']);
    const { ms } = all.clock;
    await store.syncs.claimLoad(shop.id, { holder: "a", now: ms, until: ms + 15_000 });
    const counts = { ...NO_COUNTS, subscriptions: 1_240 };
    const progress = { stage: "subscriptions", counts, done: 0.25, leftMs: 100_000 } as const;
    await store.syncs.keepLoad(shop.id, "a", ms + 15_000, progress);
    const loading = await html("/admin/data");
    expect(loading).toContain("Loading your shop: 1,240 of about 5,000 subscriptions, 2 minutes left.");
    expect(loading).toContain('<progress value="0.25" max="1" aria-label="Loaded">');
    expect(loading).not.toContain("load-notice");
    expect(await html("/admin/keys")).toMatch(
      /id="load-notice".*>Loading your shop: 1,240 of about 5,000 subscriptions/,
    );
    await store.syncs.releaseLoad(shop.id, "a", progress);
    await store.syncs.complete(shop.id, "full", START, 1, START);
    expect(await shows()).toBeNull();
    await receiveFailed(store, shop);
    const failed = await html("/admin/data");
    expect(textIn(failed, "verdict")).toStartWith("1 change from Shopify could not be processed.");
    expect(/<p id="todo">(.*?)<\/p>/.exec(failed)?.[1]).toContain('href="/admin/data/inbox"');
    await store.connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
    const page = await html("/admin/data");
    expect(factsIn(page, "mirror-facts")["Shopify"]).toBe("not connected");
    expect(textIn(page, "verdict")).toBe(
      "The shop is not connected to Shopify. This data was imported, or sent by the billing system.",
    );
  });

  test("a trouble of the connection is told in words, with what to do and without commands", async () => {
    const { html, store, shop } = await signedIn();
    await store.connections.connect(shop.id, "token", TOKENS, ALL_SCOPES, START);
    await store.connections.setTrouble(shop.id, "the shop is locked (HTTP 423); run `sds shop connect`", START);
    const page = await html("/admin/data");
    expect(textIn(page, "verdict")).toBe(
      "Shopify has locked the shop. Nothing new has arrived since 2026-03-01 12:00 UTC. Ask Shopify's support why.",
    );
    expect(factsIn(page, "mirror-facts")["Shopify"]).toBe("connection refused");
    expect(textOf(await html("/admin/triggers"))).toContain(
      "No workflow can be started at present. Shopify has locked the shop. Ask Shopify's support why.",
    );
    await store.connections.uninstall(shop.id, START + 1);
    expect(textIn(await html("/admin/data"), "verdict")).toStartWith("The app was uninstalled on 2026-03-01");
  });
});

/** The names of a table's rows, and the addresses that they link to. */
function rowsIn(page: string, id: string): string[][] {
  const table = new RegExp(`<table id="${id}".*?</table>`, "s").exec(page)?.[0] ?? "";
  return [...table.matchAll(/<th scope="row"[^>]*><a href="([^"]*)">([^<]*)/g)].map(([, to = "", name = ""]) => [
    name,
    to,
  ]);
}

const BROWSE = "/admin/data/browse";
const DOMAIN = "alpha.myshopify.com";
const IDS = { customers: customerId(DOMAIN, gid.customer(1)), subscriptions: subscriptionId(DOMAIN, gid.contract(1)) };
const HOSTILE = `</script><script>alert(1)</script>"'\u202eabc\u0000`;

describe("the browser of rows", () => {
  test("has pages of 20, the newest first, and leads to older and newer pages", async () => {
    const { all, html, shop } = await signedIn();
    const startedAt = (n: number) => new Date(START + n * 1_000).toISOString();
    const rows = Array.from({ length: 45 }, (_, n) => subscription(n + 1, { startedAt: startedAt(n) }));
    await apply(all.app, shop, rows);
    const names = (page: string) =>
      rowsIn(page, "rows").map(([name = ""]) => Number(name.replace("Subscription ", "")));
    const first = await html(BROWSE);
    expect(names(first)).toEqual(Array.from({ length: 20 }, (_, n) => 45 - n));
    expect(linkOf(first, "newer")).toBe("");
    const second = await html(linkOf(first, "older"));
    expect(names(second)).toEqual(Array.from({ length: 20 }, (_, n) => 25 - n));
    const last = await html(linkOf(second, "older"));
    expect(names(last)).toEqual([5, 4, 3, 2, 1]);
    expect(linkOf(last, "older")).toBe("");
    expect(await html(linkOf(last, "newer"))).toBe(second);
    expect(await html(linkOf(second, "newer"))).toBe(await html(`${BROWSE}?resource=subscriptions`));
    // An invalid cursor, or the cursor of a removed row, shows the newest page.
    for (const cursor of ["x", "%00", `2026-01-01T00:00:00.000Z~sub_${"a".repeat(24)}`])
      expect(names(await html(`${BROWSE}?cursor=${cursor}`))).toEqual(names(first));
  });

  test("finds a row by its number, its gid or its id, and says if the shop has none", async () => {
    const { all, get, html, shop } = await signedIn();
    await apply(all.app, shop, [customer(1), subscription(1), order(1, 3)]);
    const [[, ofOrder = ""] = []] = rowsIn(await html(`${BROWSE}?resource=orders`), "rows");
    const subscriptionId_ = subscriptionId(DOMAIN, gid.contract(1));
    const led = async (resource: string, find: string) => {
      const answer = await get(`${BROWSE}?${new URLSearchParams({ resource, find })}`);
      return answer.headers.get("location") ?? answer.status;
    };
    expect(await led("subscriptions", " 1 ")).toBe(`${BROWSE}/${subscriptionId_}`);
    expect(await led("orders", gid.contract(1))).toBe(`${BROWSE}/${subscriptionId_}`);
    expect(await led("orders", subscriptionId_)).toBe(`${BROWSE}/${subscriptionId_}`);
    expect(await led("customers", "#1")).toBe(`${BROWSE}/${customerId(DOMAIN, gid.customer(1))}`);
    expect(await led("orders", "1003")).toBe(ofOrder);
    for (const find of ["2", "x", HOSTILE, gid.order(7), `sub_${"a".repeat(24)}`])
      expect(await led("orders", find)).toBe(404);
    const page = await html(`${BROWSE}?${new URLSearchParams({ resource: "orders", find: HOSTILE })}`);
    expect(page).not.toContain("<script>alert");
    expect(textIn(page, "find-error")).toContain("</script><script>alert(1)</script>");
  });

  test("a row has its facts, links, and the JSON of the API", async () => {
    const { all, html, shop } = await signedIn();
    const key = await newKey(all.app.store, shop);
    const person = { firstName: "Ada", lastName: "Abe", email: "ada@example.com" };
    await apply(all.app, shop, [customer(1, person), subscription(1), order(1, 3)]);
    for (const [resource, id] of Object.entries(IDS)) {
      const answer = await all.request(`/api/v1/${resource}/${id}`, { headers: { Authorization: `Bearer ${key}` } });
      expect(jsonIn(await html(`${BROWSE}/${id}`))).toEqual(await answer.json());
    }
    const shown = await html(`${BROWSE}/${IDS.subscriptions}`);
    expect(rowsIn(shown, "orders").map(([name]) => name)).toEqual(["Order 1003"]);
    expect(shown).toContain(`href="${BROWSE}/${IDS.customers}"`);
    const ofCustomer = await html(`${BROWSE}/${IDS.customers}`);
    expect(factsIn(ofCustomer, "facts")).toMatchObject({ Name: "Ada Abe", "E-mail": "ada@example.com" });
    expect(rowsIn(ofCustomer, "subscriptions")).toEqual([["Subscription 1", `${BROWSE}/${IDS.subscriptions}`]]);
    // Lists have no personal data.
    for (const path of [`${BROWSE}?resource=customers`, `${BROWSE}?resource=orders&customerId=${IDS.customers}`])
      expect(await html(path)).not.toMatch(/Ada|Abe|example\.com/);
    expect(jsonIn(await html(`${BROWSE}/${IDS.subscriptions}?include=customFields`))).toHaveProperty("customFields");
  });

  test("each fact of a row has its name", async () => {
    const { all, html, shop } = await signedIn();
    const fields = { firstName: "Ada", marketingConsent: true, creditsCents: 250, loyaltyTier: 2 };
    await apply(all.app, shop, [customer(1, fields), subscription(1), order(1, 3)]);
    const [[, ofOrder = ""] = []] = rowsIn(await html(`${BROWSE}?resource=orders`), "rows");
    const shared = { Items: "2 × House blend, USD 12.50", Deliveries: "Show the webhooks about it" };
    expect(factsIn(await html(ofOrder), "facts")).toEqual({
      ...shared,
      ...{ Status: "● Paid", Renewal: "3", Billed: "2026-02-01 00:00 UTC" },
      ...{ Subscription: IDS.subscriptions, Customer: IDS.customers },
      ...{ Subtotal: "USD 25.00", Discounts: "USD 5.00", "Store credit": "USD 1.00", Total: "USD 19.00" },
      ...{ Gid: gid.order(1003), Id: ofOrder.slice(BROWSE.length + 1) },
    });
    expect(factsIn(await html(`${BROWSE}/${IDS.subscriptions}`), "facts")).toEqual({
      ...shared,
      ...{ Status: "● Active", Customer: IDS.customers, Billed: "every month", "Renewals billed": "1" },
      ...{ "Next billing": "2026-02-01 00:00 UTC", Started: "2026-01-01 00:00 UTC", Cancelled: "–" },
      ...{ Gid: gid.contract(1), Id: IDS.subscriptions },
    });
    expect(factsIn(await html(`${BROWSE}/${IDS.customers}`), "facts")).toEqual({
      ...{ Name: "Ada", "E-mail": "–", "Marketing e-mail": "allowed", "Store credit": "USD 2.50" },
      ...{ "Loyalty tier": "2", "First seen": "2026-03-01 12:00 UTC", Deliveries: shared.Deliveries },
      ...{ Gid: gid.customer(1), Id: IDS.customers },
    });
  });

  test("a redacted customer has no name, also in the JSON, and a nameless one is told from it", async () => {
    const { all, html, shop } = await signedIn();
    const [redacted, nameless] = [
      customer(1, { firstName: "Ada", email: "ada@example.com" }),
      { type: "customer" as const, shopifyId: gid.customer(2) },
    ];
    await apply(all.app, shop, [redacted, nameless, subscription(1)]);
    await applySearched(
      all.app.store.mirror,
      [{ shop, records: [{ type: "redaction", shopifyId: gid.customer(1), asOf: START, contacts: {} }] }],
      START,
    );
    const page = await html(`${BROWSE}/${customerId(DOMAIN, gid.customer(1))}`);
    expect(textIn(page, "no-person")).toStartWith("removed");
    const other = await html(`${BROWSE}/${customerId(DOMAIN, gid.customer(2))}`);
    expect(textIn(other, "no-person")).toBe("not given to this app");
    expect(page).not.toMatch(/Ada|example\.com/);
  });

  test("hostile names and titles are shown as text, and the copied JSON is equal", async () => {
    const { all, html, shop } = await signedIn();
    const title = HOSTILE.replace("\u0000", "");
    await apply(all.app, shop, [customer(1, { firstName: title }), subscription(1, { lines: [{ ...line, title }] })]);
    for (const id of [customerId(DOMAIN, gid.customer(1)), subscriptionId(DOMAIN, gid.contract(1))]) {
      const page = await html(`${BROWSE}/${id}`);
      expect(page).not.toContain("<script>alert");
      expect(page).not.toContain("\u202e");
      expect(JSON.stringify(jsonIn(page))).toContain(JSON.stringify(title).slice(1, -1));
    }
  });

  test("another shop's rows are not found, whatever the address says", async () => {
    const { all, get, html } = await signedIn();
    const beta = await all.addShop("beta.myshopify.com");
    await apply(all.app, beta.shop, [customer(1), subscription(1), order(1, 3)]);
    const id = subscriptionId("beta.myshopify.com", gid.contract(1));
    const customer1 = customerId("beta.myshopify.com", gid.customer(1));
    for (const path of [
      `/${id}`,
      `/${customer1}`,
      `?find=${id}`,
      "?find=1",
      "?resource=orders&find=1003",
      "/x",
      "/sub_",
    ])
      expect({ path, status: (await get(`${BROWSE}${path}`)).status }).toEqual({ path, status: 404 });
    for (const query of ["", `contractId=${id}`, `customerId=${customer1}`, `cursor=2026-01-01T00:00:00.000Z~${id}`])
      expect(rowsIn(await html(`${BROWSE}?resource=orders&${query}`), "rows")).toEqual([]);
    expect((await get(`${BROWSE}?resource=orders&contractId=x`)).status).toBe(400);
  });
});

test.each([
  "/admin/data",
  BROWSE,
  "/admin/data/inbox",
  "/admin/data/requests",
  "/admin/plan",
  "/admin/triggers",
  "/admin/overview",
])("%s has no command and no jargon", async (path) => {
  const { html, store, shop } = await signedIn();
  await store.connections.connect(shop.id, "token", TOKENS, [], START);
  await receiveFailed(store, shop);
  const dataRequests = [dataRequest("1", "gid://shopify/Customer/7", START)];
  await store.mirror.applyRecords([{ shop, records: [], dataRequests }], START, []);
  for (const connect of [true, false]) {
    if (!connect) await store.connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
    expect(textOf(await html(path))).not.toMatch(/\bsds [a-z]|mirror|reconcil/i);
  }
});
