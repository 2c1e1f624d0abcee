import { expect, test } from "bun:test";
import { TABS } from "../../src/http/admin/admin-request.ts";
import { afterTest } from "../support/cleanup.ts";
import { embeddedPages, home, keys, placeOf, SHOP } from "../support/embedded-page.ts";
import { eventually } from "../support/eventually.ts";
import { check } from "../support/looks.ts";
import { APP_ORIGIN } from "../support/platform-admin.ts";
import { Receiver } from "../support/receiver.ts";

const { admin, embedded } = embeddedPages();

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
  const { platform, sds, troubles, open, frame, url } = await embedded({ SDS_RETRY_WAITS: "20ms" });
  const shop = platform.shop(SHOP);
  shop.seed({ contracts: 5, renewals: 1 });
  platform.webhooksTo = `${url}/platform/webhooks`;
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
  // The address names no shop. App Bridge then opens the app for the shop whose admin shows the frame.
  await inner?.goto(`${APP_ORIGIN}/app/keys`);
  await home(frame).waitFor();
  expect(troubles).toEqual([]);
});

// Without the page's script, a link has no ID token, and App Bridge opens the first page instead of the link's.
test("shows no link before its script runs, which may come late", async () => {
  const { page, troubles, open, frame } = await embedded();
  const [asked, sent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  admin.beforeScript = () => {
    asked.resolve();
    return sent.promise;
  };
  afterTest(() => {
    admin.beforeScript = async () => undefined;
    sent.resolve();
  });
  const opened = open();
  await asked.promise;
  const inner = page.frames().find((each) => each.url().startsWith(APP_ORIGIN));
  expect(await inner?.evaluate("document.body")).toBeNull();
  sent.resolve();
  await opened;
  await frame.getByRole("link", { name: "API keys", exact: true }).click();
  await keys(frame).waitFor();
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
