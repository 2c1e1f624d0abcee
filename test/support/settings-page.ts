import { afterAll, beforeAll } from "bun:test";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterTest } from "./cleanup.ts";
import { LIMIT_MS } from "./eventually.ts";
import { Program } from "./program.ts";
import { Receiver } from "./receiver.ts";

export const DOMAIN = "alpha.myshopify.com";

interface Options {
  /** More environment variables. The program may always send to this machine. */
  env?: Record<string, string>;
  /** More arguments of `shop add`. */
  shop?: string[];
  /** Runs before `serve` starts. */
  prepare?: (program: Program) => Promise<unknown>;
  browser?: BrowserContextOptions;
}

/** A shop's settings page in a browser, signed in through a link of the command line. */
export interface Settings {
  program: Program;
  /** Where `serve` listens. */
  url: string;
  receiver: Receiver;
  page: Page;
  /** Things that a page must never do: violate its own CSP, throw, open a dialog, send a request to another host. */
  troubles: string[];
  goto(path: string): Promise<void>;
}

/** Call this once at the top of a test file: the file's tests share a browser and nothing else. */
export function settingsPages(): (options?: Options) => Promise<Settings> {
  const browser = sharedBrowser();
  return (options = {}) => open(browser(), options);
}

/** A browser for the tests of a file. */
export function sharedBrowser(): () => Browser {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser?.close());
  return () => {
    if (browser === undefined) throw new Error("the browser was not started");
    return browser;
  };
}

export async function launchChromium(): Promise<Browser> {
  const executablePath = Bun.which("chromium") ?? Bun.which("chromium-browser");
  if (executablePath === null)
    throw new Error(
      "Chromium is missing: scripts/test --all installs it, or apt-get install -y --no-install-recommends chromium",
    );
  // Chromium's sandbox works neither for root nor in many containers. It is not needed: only our own pages are opened.
  return chromium.launch({ executablePath, chromiumSandbox: false });
}

async function open(
  browser: Browser,
  { env = {}, shop = [], prepare, browser: contextOptions = {} }: Options,
): Promise<Settings> {
  const program = new Program(undefined, { SDS_EGRESS_ALLOW: "127.0.0.0/8", ...env });
  const receiver = new Receiver();
  await program.json(["shop", "add", DOMAIN, ...shop]);
  await prepare?.(program);
  const { url } = await program.serve();
  const context = await openContext(browser, contextOptions);
  const page = await context.newPage();
  const troubles = watch(page, url);
  const { url: link } = await program.json<{ url: string }>(["admin", "link"]);
  await page.goto(link);
  await page.click("#open");
  await page.waitForURL(`${url}/admin/overview`);
  await page.goto(`${url}/admin/keys`);
  const goto = async (path: string) => {
    await page.goto(`${url}${path}`);
  };
  return { program, url, receiver, page, troubles, goto };
}

/** Opens a browser context with its own cookies and windows. It is closed after the test. */
export async function openContext(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext({ locale: "en-US", viewport: { width: 1280, height: 900 }, ...options });
  afterTest(() => context.close());
  context.setDefaultTimeout(LIMIT_MS);
  return context;
}

/** Records forbidden behaviour of the page. */
export function watch(page: Page, url: string): string[] {
  const troubles: string[] = [];
  page.on("console", (message) => {
    // The browser logs an error for a refused form, because the answer is 422.
    const isAnswer = /^Failed to load resource: the server responded with a status of 4\d\d/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isAnswer) troubles.push(message.text());
  });
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("dialog", async (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith("data:"))
      troubles.push(`asked ${request.url()}`);
  });
  return troubles;
}

/** Marks the page that is open now. The mark disappears when the page is loaded again. */
export async function markPage(page: Page): Promise<() => Promise<boolean>> {
  await page.evaluate("window.marked = true");
  return async () => (await page.evaluate<unknown>("window.marked")) === true;
}

/** Presses Enter on the focused element, and waits for the page that it opens. */
export async function enter(page: Page): Promise<void> {
  const loaded = page.waitForEvent("load");
  await page.keyboard.press("Enter");
  await loaded;
}

/** Presses Tab until the selected element has the focus. Checks on the way that the focus is visible. */
export async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press("Tab");
    const { found, seen, what } = await page.evaluate<{ found: boolean; seen: boolean; what: string }>(`(() => {
      const focused = document.activeElement;
      const { outlineStyle, boxShadow } = getComputedStyle(focused);
      return { found: focused.matches(${JSON.stringify(selector)}), seen: outlineStyle !== "none" || boxShadow !== "none", what: focused.outerHTML.slice(0, 120) };
    })()`);
    if (!seen && !what.startsWith("<body")) throw new Error(`the focus can't be seen on ${what}`);
    if (found) return;
  }
  throw new Error(`Tab does not lead to ${selector}`);
}
