import { afterAll, beforeAll } from "bun:test";
import type { Browser, FrameLocator, Page } from "playwright-core";
import { afterTest } from "./cleanup.ts";
import { platformEnv, SECRET } from "./connected.ts";
import { StandIn } from "./platform/stand-in.ts";
import { APP_ORIGIN, PlatformAdmin } from "./platform-admin.ts";
import { Program } from "./program.ts";
import { openContext } from "./settings-page.ts";

export const SHOP = "alpha.myshopify.com";

/** The settings page in the platform's admin. */
export interface EmbeddedPage {
  platform: StandIn;
  /** Where the program listens. */
  url: string;
  sds: Program;
  page: Page;
  /**
   * Uncaught errors of the page, and errors and warnings in its console. Refused requests (status 4xx) are left out.
   */
  troubles: string[];
  open(path?: string): Promise<void>;
  frame: FrameLocator;
}

/** Starts a browser for the tests of a file. */
export function embeddedPages() {
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

  /** Starts the platform, the program and a page. The program does not know the platform's shop yet. */
  async function embedded(env: Record<string, string> = {}): Promise<EmbeddedPage> {
    const platform = await StandIn.start({ clientSecret: SECRET });
    afterTest(() => platform.stop());
    platform.addShop(SHOP);
    const sds = new Program(undefined, {
      ...platformEnv(platform),
      SDS_EGRESS_ALLOW: "127.0.0.0/8",
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
    return { platform, url: program, sds, page, troubles, open, frame: page.frameLocator("iframe") };
  }

  return { admin, embedded };
}

export const home = (frame: FrameLocator) => frame.getByRole("heading", { name: "Overview", exact: true });
export const keys = (frame: FrameLocator) => frame.getByRole("heading", { name: "API keys", exact: true });

/** The path of the frame, and the parameters in the frame's address that App Bridge needs. */
export function placeOf(page: Page): { path: string; shop: string | null; hasToken: boolean } {
  const inner = page.frames().find((each) => each.url().startsWith(APP_ORIGIN));
  const { pathname, searchParams } = new URL(inner?.url() ?? "");
  return { path: pathname, shop: searchParams.get("shop"), hasToken: searchParams.has("id_token") };
}
