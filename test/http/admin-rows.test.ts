import { describe, expect, test } from "bun:test";
import { customerId, subscriptionId } from "../../src/domain/ids.ts";
import { generateKey, hashKey } from "../../src/domain/key.ts";
import { ORDER_STATUSES, SUBSCRIPTION_STATUSES } from "../../src/domain/resources.ts";
import type { Shop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { apiKey } from "../conformance/fixtures.ts";
import { apply, randomBytes, START } from "../support/app.ts";
import { customer, gid, line, order, subscription } from "../support/records.ts";
import { applySearched } from "../support/searched.ts";
import { signedIn } from "../support/signed-in.ts";
import { codeOf, factsIn, linkOf, textIn } from "./page-parts.ts";

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

/** The look, the shape and the name of each status in a table. */
function statusesIn(page: string): string[] {
  const found = page.matchAll(/<span class="status (\w*)"><span aria-hidden="true">(.)<\/span> ([^<]*)/gu);
  return [...found].map(([, ...parts]) => parts.join(" "));
}

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

  test("each status has a look, a shape and a name", async () => {
    const { all, html, shop } = await signedIn();
    await apply(all.app, shop, [
      ...SUBSCRIPTION_STATUSES.map((status, n) => subscription(n + 1, { status })),
      ...ORDER_STATUSES.map((status, n) => order(1, n + 1, { status })),
    ]);
    expect(statusesIn(await html(BROWSE)).toSorted()).toEqual([
      ...["dead ✕ Payment failed", "delivered ● Active", "pending ○ Expired"],
      ...["pending ◐ Paused", "pending ✕ Cancelled"],
    ]);
    expect(statusesIn(await html(`${BROWSE}?resource=orders`)).toSorted()).toEqual([
      ...["dead ✕ Uncollectible", "delivered ● Paid", "delivered ● Recovered"],
      ...["pending ○ Pending", "pending ○ Skipped", "retrying ◐ Failed"],
    ]);
  });

  test("finds a row by its number, its gid or its id, and says if the shop has none", async () => {
    const { all, get, html, shop } = await signedIn();
    await apply(all.app, shop, [customer(1), subscription(1), order(1, 3)]);
    const [[, ofOrder = ""] = []] = rowsIn(await html(`${BROWSE}?resource=orders`), "rows");
    const led = async (resource: string, find: string) => {
      const answer = await get(`${BROWSE}?${new URLSearchParams({ resource, find })}`);
      return answer.headers.get("location") ?? answer.status;
    };
    expect(await led("subscriptions", " 1 ")).toBe(`${BROWSE}/${IDS.subscriptions}`);
    expect(await led("orders", gid.contract(1))).toBe(`${BROWSE}/${IDS.subscriptions}`);
    expect(await led("orders", IDS.subscriptions)).toBe(`${BROWSE}/${IDS.subscriptions}`);
    expect(await led("customers", "#1")).toBe(`${BROWSE}/${IDS.customers}`);
    expect(await led("orders", "1003")).toBe(ofOrder);
    for (const find of ["2", "x", HOSTILE, gid.order(7), `sub_${"a".repeat(24)}`])
      expect(await led("orders", find)).toBe(404);
    const page = await html(`${BROWSE}?${new URLSearchParams({ resource: "orders", find: HOSTILE })}`);
    expect(page).not.toContain("<script>alert");
    expect(textIn(page, "find-error")).toContain("</script><script>alert(1)</script>");
  });

  test("a row has its facts, links, and the JSON of the API", async () => {
    const { get, all, html, shop } = await signedIn();
    const key = await newKey(all.app.store, shop);
    const person = { firstName: "Ada", lastName: "Abe", email: "ada@example.com" };
    await apply(all.app, shop, [customer(1, person), subscription(1), order(1, 3)]);
    for (const [resource, id] of Object.entries(IDS)) {
      const answer = await all.request(`/api/v1/${resource}/${id}`, { headers: { Authorization: `Bearer ${key}` } });
      expect(jsonIn(await html(`${BROWSE}/${id}`))).toEqual(await answer.json());
    }
    // A row has one address, with its internal id.
    expect((await get(`${BROWSE}/${encodeURIComponent(gid.contract(1))}`)).status).toBe(404);
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
    const page = await html(`${BROWSE}/${IDS.customers}`);
    expect(textIn(page, "no-person")).toStartWith("removed");
    const other = await html(`${BROWSE}/${customerId(DOMAIN, gid.customer(2))}`);
    expect(textIn(other, "no-person")).toBe("not given to this app");
    expect(page).not.toMatch(/Ada|example\.com/);
  });

  test("hostile names and titles are shown as text, and the copied JSON is equal", async () => {
    const { all, html, shop } = await signedIn();
    const title = HOSTILE.replace("\u0000", "");
    await apply(all.app, shop, [customer(1, { firstName: title }), subscription(1, { lines: [{ ...line, title }] })]);
    for (const id of [IDS.customers, IDS.subscriptions]) {
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
