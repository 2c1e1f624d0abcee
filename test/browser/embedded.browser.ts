import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, FrameLocator, Page } from "playwright-core";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { StandIn } from "../support/platform/stand-in.ts";
import { APP_ORIGIN, PlatformAdmin } from "../support/platform-admin.ts";
import { Program } from "../support/program.ts";
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
async function embedded(): Promise<Embedded> {
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

const keys = (frame: FrameLocator) => frame.getByRole("heading", { name: "API keys", exact: true });

test("the first view connects the shop, without a cookie and without a violation of the policy", async () => {
  const { platform, page, troubles, open, frame } = await embedded();
  await open();
  await keys(frame).waitFor();
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
  await keys(frame).waitFor();
});
