import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, FrameLocator, Page } from "playwright-core";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { TABS } from "../../src/http/admin/admin-request.ts";
import { commit } from "../conformance/fixtures.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { check } from "../support/looks.ts";
import { openStoreIn } from "../support/open-store.ts";
import { StandIn } from "../support/platform/stand-in.ts";
import { APP_ORIGIN, PlatformAdmin } from "../support/platform-admin.ts";
import { Program } from "../support/program.ts";
import { Receiver } from "../support/receiver.ts";
import { customer, gid } from "../support/records.ts";
import { openContext } from "../support/settings-page.ts";

const SECRET = "the-app-client-secret";
const SHOP = "alpha.myshopify.com";
/** Where the program of the current test listens. */
let program = "";
const admin = new PlatformAdmin({ program: () => program, clientId: "client", clientSecret: SECRET });
let browser: Browser;

beforeAll(async () => {
  browser = await admin.launch();
});
afterAll(async () => {
  await browser.close();
  await admin.stop();
});

interface Embedded {
  platform: StandIn;
  sds: Program;
  page: Page;
  /** Things that the page must never do, such as violations of its policy. */
  troubles: string[];
  open(path?: string): Promise<void>;
  frame: FrameLocator;
}

/** A shop at the platform that the program does not know, and the platform's admin in a browser. */
async function embedded(env: Record<string, string> = {}): Promise<Embedded> {
  const platform = await StandIn.start({ clientSecret: SECRET });
  afterTest(() => platform.stop());
  platform.addShop(SHOP);
  const secretFile = join(temporaryFolder(), "secret");
  writeFileSync(secretFile, SECRET, { mode: 0o600 });
  const sds = new Program(undefined, {
    SDS_EGRESS_ALLOW: "127.0.0.0/8",
    SDS_PLATFORM_URL: platform.url,
    SDS_PLATFORM_CLIENT_ID: "client",
    SDS_PLATFORM_SECRET_FILE: secretFile,
    SDS_PUBLIC_URL: APP_ORIGIN,
    ...env,
  });
  program = (await sds.serve()).url;
  const context = await openContext(browser, { ignoreHTTPSErrors: true });
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on("console", (message) => {
    const isAnswer = /^Failed to load resource: the server responded with a status of 4\d\d/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isAnswer) troubles.push(message.text());
  });
  page.on("pageerror", (error) => troubles.push(String(error)));
  const open = async (path?: string) => void (await page.goto(admin.addressOf(SHOP, path)));
  return { platform, sds, page, troubles, open, frame: page.frameLocator("iframe") };
}

const home = (frame: FrameLocator) => frame.getByRole("heading", { name: "Overview", exact: true });
const keys = (frame: FrameLocator) => frame.getByRole("heading", { name: "API keys", exact: true });

test("axe finds nothing wrong with any tab in the frame, in either theme and width", async () => {
  const { page, open, frame } = await embedded();
  const found: string[] = [];
  for (const [colorScheme, width] of [
    ["light", 1280],
    ["dark", 390],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const path of Object.keys(TABS)) {
      await open(`/app${path}`);
      await frame.locator("main h1").waitFor();
      const inner = page.frames().find((each) => each.url().startsWith(APP_ORIGIN));
      if (inner === undefined) throw new Error("there is no frame");
      found.push(...(await check(inner)).map((violation) => `${path}, ${colorScheme}: ${violation}`));
    }
  }
  expect(found).toEqual([]);
});

test("a merchant installs, repairs an endpoint, edits a field and a style, and installs again, without a command line", async () => {
  const { platform, sds, troubles, open, frame } = await embedded({ SDS_RETRY_WAITS: "20ms" });
  const shop = platform.shop(SHOP);
  shop.seed({ contracts: 5, renewals: 1 });
  platform.webhooksTo = `${program}/platform/webhooks`;
  const section = (name: string) =>
    frame.getByRole("navigation", { name: "Sections" }).getByRole("link", { name, exact: true }).click();
  await open();
  await section("Data");
  await frame.locator("#counts dt:text-is('Subscriptions') + dd", { hasText: /^5/ }).waitFor();

  const receiver = new Receiver();
  receiver.answer = () => new Response("the till is locked", { status: 503 });
  await section("Webhooks");
  await frame.getByLabel("URL", { exact: true }).fill(receiver.url);
  await frame.getByRole("button", { name: "Save" }).click();
  await frame.getByLabel("subscription.updated", { exact: true }).check();
  await frame.getByRole("button", { name: "Save topics" }).click();
  await frame.getByText("Saved.", { exact: true }).waitFor();
  shop.pause(shop.ids("contract")[0] ?? "");
  await platform.settled();
  await section("Deliveries");
  await frame.locator("#last", { hasText: "Dead" }).waitFor();
  await frame.getByRole("link", { name: "subscription.updated" }).click();
  await frame.getByText("the till is locked").first().waitFor();
  receiver.answer = () => new Response();
  await frame.getByRole("button", { name: "Resend" }).click();
  await frame
    .getByText(/^Delivered in/)
    .first()
    .waitFor();

  await section("Storefront");
  await frame.getByLabel("Key", { exact: true }).fill("gift_note");
  await frame.getByLabel("Label", { exact: true }).fill("Gift note");
  await frame.getByRole("button", { name: "Add the field" }).click();
  await frame.getByText("The field Gift note is added.").waitFor();
  await frame.getByRole("link", { name: "Widget style" }).click();
  await frame.getByLabel("CSS").fill(".title { color: teal }");
  await frame.getByRole("button", { name: "Save" }).click();
  await frame.getByText("Saved. Visitors may see the former style").waitFor();

  shop.uninstall();
  await platform.settled();
  await eventually(async () => (await sds.rows("connections")).length === 0);
  shop.install();
  await open();
  await frame.getByText("All is well").waitFor();
  await section("Storefront");
  await frame.getByText("Gift note").first().waitFor();
  expect(troubles).toEqual([]);
});

test("the first view connects the shop, without a cookie and without a violation of the policy", async () => {
  const { platform, page, troubles, open, frame } = await embedded();
  await open();
  await home(frame).waitFor();
  expect(platform.exchanges).toBe(1);
  expect(await page.context().cookies()).toEqual([]);
  expect(troubles).toEqual([]);
});

test("a frame that is loaded again, with an old ID token or none, comes back to its page", async () => {
  const { page, troubles, open, frame } = await embedded();
  await open("/app/keys");
  await keys(frame).waitFor();
  const inner = page.frames().find((each) => each.url().startsWith(APP_ORIGIN));
  const without = new URL(inner?.url() ?? "");
  without.searchParams.delete("id_token");
  for (const address of [without.href, `${without.href}&id_token=a.b.c`]) {
    await inner?.goto(address);
    await eventually(() => new URL(inner?.url() ?? "").searchParams.has("bounced_at"));
    await keys(frame).waitFor();
    expect(new URL(inner?.url() ?? "").pathname).toBe("/app/keys");
  }
  // Without a shop in the address, App Bridge finds the way.
  await inner?.goto(`${APP_ORIGIN}/app/keys`);
  await home(frame).waitFor();
  expect(troubles).toEqual([]);
});

test("no other site can show the page in a frame", async () => {
  const { page, troubles } = await embedded();
  await page.goto("https://elsewhere.example/");
  await page.evaluate(`{
    const frame = document.createElement("iframe");
    frame.src = ${JSON.stringify(admin.frameAddress(SHOP))};
    document.body.append(frame);
  }`);
  await eventually(() => troubles.join().includes("frame-ancestors"));
});

test("forged ID tokens end in a page that says so, not in a loop", async () => {
  const { platform, open, frame } = await embedded();
  admin.forges = true;
  afterTest(() => {
    admin.forges = false;
  });
  await open();
  await frame.getByRole("heading", { name: "Please try again" }).waitFor();
  expect(platform.exchanges).toBe(0);
  admin.forges = false;
  await frame.getByRole("link", { name: "Try again" }).click();
  await home(frame).waitFor();
});

/** Where the frame is, and the parameters that App Bridge needs there. */
function placeOf(page: Page): { path: string; shop: string | null; hasToken: boolean } {
  const inner = page.frames().find((each) => each.url().startsWith(APP_ORIGIN));
  const { pathname, searchParams } = new URL(inner?.url() ?? "");
  return { path: pathname, shop: searchParams.get("shop"), hasToken: searchParams.has("id_token") };
}

test("links, back and forward, and the platform's menu show pages without loading the document again", async () => {
  const { page, troubles, open, frame } = await embedded();
  await open();
  await home(frame).waitFor();
  const inner = page.frames().find((each) => each.url().startsWith(APP_ORIGIN));
  await inner?.evaluate("window.marked = true");
  const heading = (name: string) => frame.getByRole("heading", { name, exact: true, level: 1 });
  const focused = () => inner?.evaluate<string>("document.activeElement.textContent");

  await frame.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: "Webhooks" }).click();
  await heading("Webhooks").waitFor();
  expect(placeOf(page)).toEqual({ path: "/app/webhooks", shop: SHOP, hasToken: false });
  expect([await focused(), await inner?.title()]).toEqual(["Webhooks", `Webhooks · ${SHOP}`]);
  expect(await frame.locator("#said").textContent()).toBe("Webhooks");
  expect(await frame.locator('header nav [aria-current="page"]').textContent()).toBe("Webhooks");

  await page.evaluate('navigate("/app/fields")');
  await heading("Custom fields").waitFor();
  await inner?.evaluate("history.back()");
  await heading("Webhooks").waitFor();
  expect(placeOf(page).path).toBe("/app/webhooks");
  await inner?.evaluate("history.forward()");
  await heading("Custom fields").waitFor();
  expect(await inner?.evaluate<boolean>("window.marked")).toBe(true);

  await inner?.evaluate("location.reload()");
  await eventually(async () => (await inner?.evaluate("window.marked").catch(() => true)) === undefined);
  await heading("Custom fields").waitFor();
  expect(troubles).toEqual([]);
});

test("forms work: a key is made once and works, a refusal keeps what was typed, and the key is revoked", async () => {
  const { page, sds, troubles, open, frame } = await embedded();
  await open("/app/keys");
  await keys(frame).waitFor();
  await frame.getByLabel("Label").fill("Warehouse");
  await frame.getByRole("button", { name: "Create key" }).dblclick();
  const key = (await frame.locator("#new-secret").textContent()) ?? "";
  const read = () => fetch(`${program}/api/v1/shop`, { headers: { Authorization: `Bearer ${key}` } });
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
  // Chromium tells the new address before it moves the focus.
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
  const { platform, sds, troubles, open, frame } = await embedded();
  await open("/app/keys");
  await keys(frame).waitFor();
  platform.webhooksTo = `${program}/platform/webhooks`;
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
