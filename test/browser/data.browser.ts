import { expect, test } from "bun:test";
import { customerId, subscriptionId } from "../../src/domain/ids.ts";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { commit, receiveFailed } from "../conformance/fixtures.ts";
import { look } from "../support/looks.ts";
import { openStoreIn } from "../support/open-store.ts";
import type { Program } from "../support/program.ts";
import { customer, gid, line, order, subscription } from "../support/records.ts";
import { DOMAIN, settingsPages } from "../support/settings-page.ts";

const open = settingsPages();
const HOSTILE = `</script><img src=x onerror="window.hacked=1">\u202eabc`;
const BROWSE = "/admin/data/browse";
const CUSTOMER = customerId(DOMAIN, gid.customer(1));
const SUBSCRIPTION = subscriptionId(DOMAIN, gid.contract(1));

/** Stores rows with hostile names, two failed items and a data request. */
async function fill(program: Program): Promise<void> {
  const store = await openStoreIn(program.data);
  const shop = await store.shops.find(DOMAIN);
  if (shop === undefined) throw new Error("the shop is missing");
  const lines = Array.from({ length: 9 }, () => ({ ...line, title: `${HOSTILE} ${"x".repeat(200)}` }));
  const orders = Array.from({ length: 30 }, (_, n) => order(1, n + 1));
  await commit(store, shop, [
    customer(1, { firstName: HOSTILE, lastName: "Abe" }),
    subscription(1, { lines }),
    ...orders,
  ]);
  await receiveFailed(store, shop, 2);
  const dataRequests = [dataRequest("1", gid.customer(1), Date.now())];
  await store.mirror.applyRecords([{ shop, records: [], dataRequests }], Date.now(), []);
  await store.close();
}

test("a row is found, its links are followed, and its JSON is copied", async () => {
  const { page, troubles, goto } = await open({
    prepare: fill,
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
  });
  await goto("/admin/data");
  await page.getByRole("link", { name: "Browse orders" }).click();
  await page.getByRole("link", { name: "Older ›" }).click();
  expect(await page.locator("#rows tbody tr").count()).toBe(10);
  await page.getByRole("link", { name: "‹ Newer" }).click();
  await page.locator("#rows tbody tr").nth(19).waitFor();
  await page.selectOption("#resource", "subscriptions");
  await page.fill("#find", "7");
  await page.press("#find", "Enter");
  expect(await page.textContent("#find-error")).toBe("This shop has no subscription “7”.");
  await page.fill("#find", "#1");
  await page.press("#find", "Enter");
  await page.getByRole("heading", { name: "Subscription 1", exact: true }).waitFor();
  await page.getByRole("button", { name: "Copy the JSON" }).click();
  await page.locator("#said", { hasText: "Copied" }).waitFor({ state: "attached" });
  const copied = JSON.parse(await page.evaluate<string>("navigator.clipboard.readText()"));
  expect(copied).toMatchObject({ id: SUBSCRIPTION, customerId: CUSTOMER });
  expect(copied.lines[0].title).toStartWith(HOSTILE);
  await page.getByRole("link", { name: "All orders" }).click();
  await page.locator("#narrowed").getByRole("link", { name: SUBSCRIPTION }).click();
  await page.getByRole("link", { name: CUSTOMER }).click();
  await page.getByRole("heading", { name: "Customer 1", exact: true }).waitFor();
  expect(await page.textContent("#facts")).toContain("Abe");
  expect(await page.evaluate<unknown>("window.hacked")).toBeUndefined();
  expect(await page.locator("main img, main script").count()).toBe(0);
  expect(troubles).toEqual([]);
});

test("without scripts, a failed item is tried again, and a data request is exported and answered", async () => {
  const { page, troubles, goto } = await open({ prepare: fill, browser: { javaScriptEnabled: false } });
  await goto("/admin/data/inbox");
  expect(await page.locator("#failed tbody tr").count()).toBe(2);
  await page.getByRole("button", { name: "Try again: Order paid, The shop" }).first().click();
  expect(await page.textContent("#notices")).toBe("The item is processed again now.");
  await goto("/admin/data/requests");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export the data of customer 1" }).click();
  const file = await download;
  expect(file.suggestedFilename()).toBe("customer-1.json");
  const exported = JSON.parse(await Bun.file(await file.path()).text());
  expect(exported.customer).toMatchObject({ firstName: HOSTILE });
  await page.getByRole("link", { name: "Mark as answered… the request of customer 1" }).click();
  await page.click("#confirm");
  expect(await page.textContent("#notices")).toBe("The request of customer 1 is marked as answered.");
  expect(await page.textContent("#no-requests")).toBe("No customer waits for an answer.");
  await goto("/admin/audit");
  for (const text of ["Customer's data exported", "Data request answered", "Failed item tried again"])
    expect(await page.textContent("main")).toContain(text);
  expect(troubles).toEqual([]);
});

test("axe finds nothing wrong with the pages of the data, and every page fits a narrow screen", async () => {
  const { page, goto } = await open({ prepare: fill });
  const found: string[] = [];
  for (const [name, path] of [
    ["data-full", "/admin/data"],
    ["data-browse", BROWSE],
    ["data-orders", `${BROWSE}?resource=orders&contractId=${SUBSCRIPTION}`],
    ["data-not-found", `${BROWSE}?resource=orders&find=${encodeURIComponent(HOSTILE)}`],
    ["data-subscription", `${BROWSE}/${SUBSCRIPTION}`],
    ["data-customer", `${BROWSE}/${CUSTOMER}`],
    ["data-inbox", "/admin/data/inbox"],
    ["data-requests", "/admin/data/requests"],
    ["data-answered", "/admin/data/requests/1/answered"],
  ] as const) {
    await goto(path);
    found.push(...(await look(page, name)));
  }
  expect(found).toEqual([]);
});
