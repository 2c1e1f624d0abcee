import { expect, test } from "bun:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { PAGES } from "../../src/http/docs/site.ts";
import { eventually } from "../support/eventually.ts";
import { glance, look, VIEWS } from "../support/looks.ts";
import { Program } from "../support/program.ts";
import { openContext, sharedBrowser, tabTo, watch } from "../support/settings-page.ts";

const browser = sharedBrowser();

/** Opens the documentation in a browser, without a key and a session. */
async function open(options: BrowserContextOptions = {}): Promise<{ page: Page; url: string; troubles: string[] }> {
  const program = await Program.withShop();
  const { url } = await program.serve();
  const context = await openContext(browser(), options);
  const page = await context.newPage();
  return { page, url, troubles: watch(page, url) };
}

/**
 * One page of each kind. These pages are checked in both themes and widths. Every other page looks like one of them, so
 * it is checked only once.
 */
const KINDS = ["/docs", "/docs/search?q=checkpoint", "/docs/api", "/docs/webhooks", "/docs/reference-orders"];

function nameOf(path: string): string {
  return path.slice(1).replaceAll(/\W/g, "-");
}

test("axe finds nothing wrong with any page, every page fits a narrow screen, and none breaks its policy", async () => {
  const { page, url, troubles } = await open();
  const found: string[] = [];
  for (const path of KINDS) {
    await page.goto(`${url}${path}`);
    found.push(...(await look(page, nameOf(path))));
  }
  for (const [index, { path }] of PAGES.filter((each) => !KINDS.includes(each.path)).entries()) {
    await page.goto(`${url}${path}`);
    const view = VIEWS[index % VIEWS.length];
    if (view !== undefined) found.push(...(await glance(page, nameOf(path), view)));
  }
  expect({ found, troubles }).toEqual({ found: [], troubles: [] });
});

test("without scripts, a reader on a phone goes from the first page to another one, to a section, and searches", async () => {
  const { page, url } = await open({ javaScriptEnabled: false, viewport: { width: 360, height: 700 } });
  await page.goto(`${url}/docs`);
  await page.locator("summary", { hasText: "All pages" }).click();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Webhooks", exact: true }).click();
  await page.locator("summary", { hasText: "On this page" }).click();
  await page.getByRole("navigation", { name: "On this page" }).getByRole("link", { name: "Retries" }).click();
  expect(page.url()).toBe(`${url}/docs/webhooks#retries`);
  await page.getByRole("searchbox").fill("X-Checkpoint first page");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("link", { name: "Keeping a copy current: In three steps" }).click();
  expect(page.url()).toBe(`${url}/docs/copies#in-three-steps`);
});

test("with the keyboard alone a reader comes to the content, to another page and to the search", async () => {
  const { page, url } = await open();
  await page.goto(`${url}/docs/api`);
  await page.keyboard.press("Tab");
  expect(await page.evaluate<string>("document.activeElement.textContent.trim()")).toBe("Skip to the content");
  await page.keyboard.press("Enter");
  await eventually(async () => (await page.evaluate<string>("document.activeElement.id")) === "main");
  await page.goto(`${url}/docs`);
  await tabTo(page, 'nav a[href="/docs/copies"]');
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Keeping a copy current" }).waitFor();
  await tabTo(page, "input[type=search]");
  await page.keyboard.type("errors");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Search" }).waitFor();
});

test("a reader chooses a theme and a language, which the next page keeps, and copies code", async () => {
  const { page, url, troubles } = await open({
    colorScheme: "light",
    permissions: ["clipboard-write", "clipboard-read"],
  });
  const ground = () => page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
  await page.goto(`${url}/docs/webhooks`);
  expect(await ground()).toBe("rgb(255, 255, 255)");
  await page.getByRole("button", { name: "Theme: system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).click();
  await page.getByRole("button", { name: "Theme: dark" }).waitFor();
  expect(await ground()).toBe("rgb(22, 23, 26)");

  const ruby = page.locator("main figure", { hasText: "OpenSSL" });
  expect(await ruby.isVisible()).toBe(false);
  await page.getByRole("button", { name: "Ruby" }).click();
  expect([await ruby.isVisible(), await page.locator("main figure", { hasText: "hmac.compare" }).isVisible()]).toEqual([
    true,
    false,
  ]);
  await page.reload();
  expect([await ground(), await ruby.isVisible()]).toEqual(["rgb(22, 23, 26)", true]);

  await ruby.hover();
  await page
    .locator(".copyable", { has: page.locator("pre", { hasText: "OpenSSL" }) })
    .getByRole("button")
    .click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  expect(await page.evaluate<string>("navigator.clipboard.readText()")).toContain("OpenSSL");
  expect(troubles).toEqual([]);
});

test.each([
  ["how do I verify?", "Webhooks: Signature"],
  ["systemd", "Operating"],
])("a slash leads to the search, and %p finds an answer", async (question, answer) => {
  const { page, url } = await open();
  await page.goto(`${url}/docs/api`);
  await page.keyboard.press("/");
  await page.keyboard.type(question);
  await page.keyboard.press("Enter");
  await page.locator(".hits li").first().waitFor();
  expect(await page.locator(".hits li a").first().textContent()).toContain(answer);
});
