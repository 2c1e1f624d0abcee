import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { LONGEST_BURST_MS } from "../../src/shopify/api/topics.ts";
import { START, type TestApp, temporaryFolder, testApp } from "./app.ts";
import { afterTest } from "./cleanup.ts";
import { eventually } from "./eventually.ts";
import type { PlatformShop } from "./platform/shop.ts";
import { StandIn } from "./platform/stand-in.ts";
import type { Webhook } from "./platform/webhook.ts";

export const SECRET = "the-app-client-secret";
export const DOMAIN = "alpha.myshopify.com";

/**
 * A stand-in of the platform that stops at the end of the test. It fails the test if there was a request that the
 * platform would not answer.
 */
async function standIn(options: Parameters<typeof StandIn.start>[0] = {}): Promise<StandIn> {
  const platform = await StandIn.start({
    clientSecret: SECRET,
    restoreRate: 100_000,
    maximumAvailable: 100_000,
    ...options,
  });
  afterTest(async () => {
    await platform.stop();
    if (platform.invalid.length > 0) throw new Error(`the platform would not answer: ${platform.invalid.join("; ")}`);
  });
  return platform;
}

export interface ConnectedShop {
  test: TestApp;
  platform: StandIn;
  remote: PlatformShop;
  shop: Awaited<ReturnType<TestApp["addShop"]>>;
  /** Posts a platform webhook to the program, as the platform would. */
  send(webhook: Webhook): Promise<Response>;
  /** Posts all platform webhooks that wait at the stand-in, and waits until they are processed. */
  deliverAll(): Promise<void>;
  /**
   * Waits until the inbox has no due platform webhook. Moves the clock by up to 8 seconds, so that collected webhooks
   * are due too. Failed webhooks stay in the inbox.
   */
  processed(): Promise<void>;
}

/** The program and the stand-in, with one shop connected by the app's credentials. */
export async function connected(
  env: Record<string, string> = {},
  options: Parameters<typeof StandIn.start>[0] = {},
): Promise<ConnectedShop> {
  // One clock for both, which the test moves.
  let now = () => START;
  const platform = await standIn({ now: () => now(), ...options });
  platform.addShop(DOMAIN);
  const all = await connectedTo(platform, env);
  now = all.test.clock.now;
  return all;
}

/** Another program, with nothing in its mirror, connected to the same shop. */
export async function connectedTo(
  platform: StandIn,
  env: Record<string, string> = {},
  at = START,
): Promise<ConnectedShop> {
  const secretFile = join(temporaryFolder(), "secret");
  writeFileSync(secretFile, SECRET);
  const test = await testApp({
    SDS_PLATFORM_URL: platform.url,
    SDS_PLATFORM_CLIENT_ID: "client",
    SDS_PLATFORM_SECRET_FILE: secretFile,
    ...env,
  });
  test.clock.ms = at;
  const remote = platform.shop(DOMAIN);
  const shop = await test.addShop(DOMAIN);
  await test.app.platform.connect(DOMAIN, { kind: "client_credentials" });

  async function send(webhook: Webhook): Promise<Response> {
    const { headers, body } = platform.signed(webhook);
    return test.request("/platform/webhooks", { method: "POST", headers, body });
  }

  /** When the first collected platform webhook is due; undefined if no collected webhook waits. */
  async function nextBurstEnd(): Promise<number | undefined> {
    const entries = await test.app.store.inbox.list(shop.shop.id, { limit: 1_000, status: "waiting" });
    const ends = entries.flatMap(({ attempts, nextAttemptAt }) => (attempts === 0 ? [nextAttemptAt ?? 0] : []));
    const later = ends.filter((at) => at > test.clock.ms && at <= test.clock.ms + LONGEST_BURST_MS);
    return later.length === 0 ? undefined : Math.min(...later);
  }

  async function processed(): Promise<void> {
    await eventually(() => !test.app.processor.working);
    for (let end = await nextBurstEnd(); end !== undefined; end = await nextBurstEnd()) {
      test.clock.ms = end;
      test.app.processor.wake();
      await eventually(() => !test.app.processor.working);
    }
  }

  async function deliverAll(): Promise<void> {
    for (const webhook of remote.outgoing.splice(0)) await send(webhook);
    await processed();
  }

  return { test, platform, remote, shop, send, processed, deliverAll };
}
