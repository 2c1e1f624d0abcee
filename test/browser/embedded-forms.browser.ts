import { expect, test } from "bun:test";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { commit } from "../conformance/fixtures.ts";
import { afterTest } from "../support/cleanup.ts";
import { embeddedPages, home, keys, placeOf, SHOP } from "../support/embedded-page.ts";
import { eventually } from "../support/eventually.ts";
import { openStoreIn } from "../support/open-store.ts";
import { APP_ORIGIN } from "../support/platform-admin.ts";
import { Receiver } from "../support/receiver.ts";
import { customer, gid } from "../support/records.ts";

const { admin, embedded } = embeddedPages();

test("forms work: a key is made once and works, a refusal keeps what was typed, and the key is revoked", async () => {
  const { page, sds, troubles, open, frame, url } = await embedded();
  await open("/app/keys");
  await keys(frame).waitFor();
  await frame.getByLabel("Label").fill("Warehouse");
  await frame.getByRole("button", { name: "Create key" }).dblclick();
  const key = (await frame.locator("#new-secret").textContent()) ?? "";
  const read = () => fetch(`${url}/api/v1/shop`, { headers: { Authorization: `Bearer ${key}` } });
  expect((await read()).status).toBe(200);
  expect(await sds.json<object[]>(["key", "list"])).toHaveLength(1);

  await frame.getByRole("link", { name: "Webhooks" }).click();
  await frame.getByLabel("URL", { exact: true }).fill("http://10.0.0.1/");
  await frame.getByRole("button", { name: "Save" }).click();
  await frame.locator("#url-error").waitFor();
  expect(await frame.getByLabel("URL", { exact: true }).inputValue()).toBe("http://10.0.0.1/");

  await frame.getByRole("link", { name: "API keys" }).click();
  await frame.getByRole("link", { name: "Revoke Warehouse" }).click();
  await frame.getByRole("button", { name: "Revoke the key" }).click();
  await frame.getByText("is revoked.").waitFor();
  expect((await read()).status).toBe(401);
  expect(await page.context().cookies()).toEqual([]);
  expect(troubles).toEqual([]);
});

test("an endpoint is set, its test shows what failed and then the answer, and a key's command works", async () => {
  const { sds, troubles, open, frame } = await embedded();
  await open("/app/webhooks");
  const receiver = new Receiver();
  receiver.answer = () => new Response("", { status: 404 });
  await frame.getByLabel("URL", { exact: true }).fill(receiver.url);
  await frame.getByRole("button", { name: "Save" }).click();
  await frame.getByLabel("order.failed", { exact: true }).check();
  await frame.getByRole("button", { name: "Save topics" }).click();
  await frame.getByText("Saved.", { exact: true }).waitFor();
  expect(await sds.json(["webhook", "show"])).toEqual({ url: receiver.url, topics: ["order.failed"] });
  await frame.getByRole("link", { name: "Endpoint" }).click();
  await frame.getByRole("button", { name: "Send test event" }).click();
  await frame.locator("#test-result", { hasText: "Your endpoint answered 404." }).waitFor();
  receiver.answer = () => new Response();
  await frame.getByRole("button", { name: "Send test event" }).click();
  await frame.locator("#test-result", { hasText: /200 in \d+ ms, signed with the current secret/ }).waitFor();

  await frame.getByRole("link", { name: "API keys" }).click();
  await frame.getByLabel("Label").fill("Warehouse");
  await frame.getByRole("button", { name: "Create key" }).click();
  const command = (await frame.locator("#new-key-command").textContent()) ?? "";
  expect(command).toContain(`"${APP_ORIGIN}/api/v1/subscriptions?limit=1"`);
  expect(await frame.locator("#keys [data-label='Made by']").textContent()).toMatch(/^staff \d+$/);
  expect(troubles).toEqual([]);
});

test("the preview shows the typed style, and other sites open in a window of their own", async () => {
  const { page, troubles, open, frame } = await embedded();
  await open("/app/style");
  const widget = frame.frameLocator("iframe.preview");
  await widget.getByText("Your subscription").waitFor();
  await frame.getByLabel("CSS").fill(".title { color: rgb(1, 2, 3) }");
  await frame.getByRole("button", { name: "Preview" }).click();
  const color = () => widget.locator(".title").evaluate((title) => getComputedStyle(title).color);
  await eventually(async () => (await color().catch(() => "")) === "rgb(1, 2, 3)");
  const [docs] = await Promise.all([
    page.context().waitForEvent("page"),
    frame.getByRole("link", { name: "What is allowed, and a style to begin with" }).click(),
  ]);
  await docs.waitForURL("**/docs/storefront");
  expect(troubles).toEqual([]);
});

test("the skip link moves to the content, and keeps what was typed", async () => {
  const { page, troubles, open, frame } = await embedded();
  await open("/app/keys");
  await keys(frame).waitFor();
  await frame.getByLabel("Label").fill("Typed");
  const inner = page.frames().find((each) => each.url().startsWith(APP_ORIGIN));
  const requested: string[] = [];
  page.on("request", (request) => requested.push(new URL(request.url()).pathname));
  await frame.getByRole("link", { name: "Skip to the content" }).focus();
  await page.keyboard.press("Enter");
  await eventually(() => inner?.url().endsWith("#main") === true);
  // Chromium reports the new address before it moves the focus.
  await eventually(async () => (await inner?.evaluate<string>("document.activeElement.id")) === "main");
  expect(await frame.getByLabel("Label").inputValue()).toBe("Typed");
  await frame.getByRole("link", { name: "Webhooks" }).click();
  await frame.getByRole("heading", { name: "Webhooks", exact: true, level: 1 }).waitFor();
  expect(requested.filter((path) => path.startsWith("/app"))).toEqual(["/app/webhooks"]);
  expect(troubles).toEqual([]);
});

test("a refused form keeps what was typed, and the page can be loaded again", async () => {
  const { page, open, frame } = await embedded();
  await open("/app/keys");
  await keys(frame).waitFor();
  await frame.getByLabel("Label").fill("Typed");
  admin.forges = true;
  afterTest(() => {
    admin.forges = false;
  });
  await frame.getByRole("button", { name: "Create key" }).click();
  await frame.locator("#failure", { hasText: "could not confirm who you are" }).waitFor();
  expect(await frame.locator("#failure").count()).toBe(1);
  expect(await frame.getByLabel("Label").inputValue()).toBe("Typed");
  expect(placeOf(page).path).toBe("/app/keys");
  admin.forges = false;
  await frame.getByRole("button", { name: "Load the page again" }).click();
  await frame.locator("#failure").waitFor({ state: "detached" });
  await keys(frame).waitFor();
});

test("a click while the shop is connected again for long shows the page as soon as it is connected", async () => {
  const { platform, sds, troubles, open, frame, url } = await embedded();
  await open("/app/keys");
  await keys(frame).waitFor();
  platform.webhooksTo = `${url}/platform/webhooks`;
  platform.shop(SHOP).uninstall();
  await platform.settled();
  const store = await openStoreIn(sds.data);
  const shopId = (await store.shops.find(SHOP))?.id ?? 0;
  await eventually(async () => (await store.connections.find(shopId)) === undefined);
  await store.close();
  platform.shop(SHOP).install();
  const { promise, resolve } = Promise.withResolvers<void>();
  platform.fault = ({ operation }) => (operation === "exchange" ? { until: promise } : undefined);
  await frame.getByRole("link", { name: "Webhooks", exact: true }).click();
  await frame.getByRole("heading", { name: "Connecting your shop" }).waitFor();
  resolve();
  await frame.getByRole("heading", { name: "Webhooks", exact: true, level: 1 }).waitFor();
  expect(troubles).toEqual([]);
});

test("without the admin's permission for the clipboard, the key is selected", async () => {
  const { page, open, frame } = await embedded();
  await open("/app/keys");
  await keys(frame).waitFor();
  await frame.getByLabel("Label").fill("Warehouse");
  await frame.getByRole("button", { name: "Create key" }).click();
  const key = (await frame.locator("#new-secret").textContent()) ?? "";
  const inner = page.frames().find((each) => each.url().startsWith(APP_ORIGIN));
  await frame.getByRole("button", { name: "Copy the new key" }).click();
  await frame
    .getByRole("button", { name: "Copy the new key" })
    .getByText(/^(Copied|Select and copy)$/)
    .waitFor();
  expect(await inner?.evaluate<string>("getSelection().toString()")).toBe(key);
});

test("the delivery log updates by itself, and follows the page", async () => {
  const { page, sds, troubles, open, frame } = await embedded();
  const receiver = new Receiver();
  await open("/app/keys");
  await keys(frame).waitFor();
  await sds.json(["webhook", "set", "--url", receiver.url]);
  await frame.getByRole("link", { name: "Deliveries", exact: true }).click();
  await frame.getByRole("heading", { name: "Deliveries", exact: true, level: 1 }).waitFor();
  await sds.json(["webhook", "test", "--topic", "order.failed"]);
  await frame.locator("#last", { hasText: "order.failed" }).waitFor();
  await sds.json(["webhook", "test", "--topic", "order.charged"]);
  await frame.locator("#news", { hasText: "1 new" }).waitFor();
  await frame.locator("#topic").selectOption("order.charged");
  await frame.getByRole("button", { name: "Search" }).click();
  await frame.locator("#clear").waitFor();
  expect(await frame.locator("#last tbody th").allTextContents()).toEqual(["order.charged"]);
  await sds.json(["webhook", "test", "--topic", "order.failed"]);
  await sds.json(["webhook", "test", "--topic", "order.charged"]);
  await frame.locator("#news", { hasText: "1 new" }).click();
  await frame.locator("#last tbody tr").nth(1).waitFor();
  expect(await frame.locator("#last tbody th").allTextContents()).toEqual(["order.charged", "order.charged"]);
  await page.evaluate('navigate("/app/keys")');
  await keys(frame).waitFor();
  expect(await frame.locator("#live").count()).toBe(0);
  expect(troubles).toEqual([]);
});

test("a customer's data is exported as a file, also in the frame", async () => {
  const { sds, page, troubles, open, frame } = await embedded();
  await open();
  await home(frame).waitFor();
  const store = await openStoreIn(sds.data);
  const shop = await store.shops.find(SHOP);
  if (shop === undefined) throw new Error("the shop is missing");
  await commit(store, shop, [customer(7, { firstName: "Ada" })], Date.now());
  const dataRequests = [dataRequest("1", gid.customer(7), Date.now())];
  await store.mirror.applyRecords([{ shop, records: [], dataRequests }], Date.now(), []);
  await store.close();
  await frame.getByRole("link", { name: "Data", exact: true }).click();
  await frame.getByRole("link", { name: "Requests", exact: true }).click();
  await frame.getByRole("button", { name: "Export the data of customer 7" }).click();
  const download = page.waitForEvent("download");
  await frame.getByRole("link", { name: "Download customer-7.json" }).click();
  const file = await download;
  expect(file.suggestedFilename()).toBe("customer-7.json");
  expect(JSON.parse(await Bun.file(await file.path()).text())).toMatchObject({ customer: { firstName: "Ada" } });
  expect(troubles).toEqual([]);
});
