import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import type { SyncProgress } from "../../src/domain/platform/load-progress.ts";
import type { SyncCounts } from "../../src/domain/platform/sync.ts";
import { LONGEST_BURST_MS } from "../../src/shopify/api/topics.ts";
import { appFiles } from "../../src/shopify/install/app-files.ts";
import type { LoadOptions } from "../../src/shopify/sync/full-sync.ts";
import type { InboxEntry } from "../../src/store/port/inbox.ts";
import { START, type TestApp, type TestShop, temporaryFolder, testApp } from "./app.ts";
import { afterTest } from "./cleanup.ts";
import { eventually } from "./eventually.ts";
import type { ContractInput } from "./platform/contract-changes.ts";
import type { Fault } from "./platform/faults.ts";
import type { LineInput } from "./platform/lines.ts";
import type { Seeding } from "./platform/seed.ts";
import type { PlatformShop } from "./platform/shop.ts";
import { StandIn } from "./platform/stand-in.ts";
import type { Webhook } from "./platform/webhook.ts";

export const SECRET = "the-app-client-secret";
export const DOMAIN = "alpha.myshopify.com";
export const HOUR_MS = 3_600_000;
/** How often the program sends a query that the platform answers with HTTP 503. */
export const TRIES = 5;

export const LINE: LineInput = {
  title: "House blend",
  price: "12.50",
  quantity: 2,
  variant: "gid://shopify/ProductVariant/11",
  product: "gid://shopify/Product/12",
};

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

/** The program and the stand-in, with one connected shop. The functions of this class work after destructuring too. */
export class ConnectedShop {
  readonly test: TestApp;
  readonly platform: StandIn;
  readonly remote: PlatformShop;
  readonly shop: TestShop;

  constructor(test: TestApp, platform: StandIn, shop: TestShop) {
    this.test = test;
    this.platform = platform;
    this.remote = platform.shop(DOMAIN);
    this.shop = shop;
  }

  /** Makes a contract at the platform, with a new customer unless one is given. @returns its gid */
  createContract = (fields: Partial<ContractInput> = {}): string => createContract(this.remote, fields);

  /** Posts a platform webhook to the program, as the platform would. */
  send = async (webhook: Webhook): Promise<Response> => {
    const { headers, body } = this.platform.signed(webhook);
    return this.test.request("/platform/webhooks", { method: "POST", headers, body });
  };

  /** Posts all platform webhooks that wait at the stand-in, and waits until they are processed. */
  deliverAll = async (): Promise<void> => {
    for (const webhook of this.remote.outgoing.splice(0)) await this.send(webhook);
    await this.processed();
  };

  /**
   * Waits until the inbox has no due platform webhook. Moves the clock to the end of each wait in which webhooks about
   * one subject are collected. Failed webhooks stay in the inbox.
   */
  processed = async (): Promise<void> => {
    const { processor } = this.test.app;
    await eventually(() => !processor.working);
    for (let end = await nextBurstEnd(this); end !== undefined; end = await nextBurstEnd(this)) {
      this.test.clock.ms = end;
      processor.wake();
      await eventually(() => !processor.working);
    }
  };

  /** Moves the clock, and waits until everything that is due then is processed. */
  processedAfter = async (waitMs: number): Promise<void> => {
    this.test.clock.ms += waitMs;
    this.test.app.processor.wake();
    await this.processed();
  };

  /** The shop's inbox items, newest first. */
  inbox = (): Promise<InboxEntry[]> => this.test.app.store.inbox.list(this.shop.shop.id, { limit: 100 });

  /** Loads the shop, without events unless they are wanted. */
  load = (options: Partial<LoadOptions> = {}, onProgress?: (progress: SyncProgress) => void): Promise<SyncCounts> =>
    this.test.app.platform.synchronizer.load(this.shop.shop, { events: false, ...options }, onProgress);
  reconcile = (since?: number): Promise<SyncCounts> =>
    this.test.app.platform.synchronizer.reconcile(this.shop.shop, since);

  /** Gives the shop a webhook endpoint for all topics, so that every event is queued. */
  queueAllEvents = async (): Promise<void> => {
    const endpoint = { url: "https://hooks.example.com/", topics: TOPIC_NAMES };
    await this.test.app.store.webhooks.set(this.shop.shop.id, endpoint, this.test.clock.now());
  };

  /** The topics of the queued events, the oldest first. */
  queuedTopics = async (): Promise<string[]> => {
    const deliveries = await this.test.app.store.deliveries.list(this.shop.shop.id, { limit: 100 });
    return deliveries.map(({ topic }) => topic).toReversed();
  };

  /** The operations that were requested from the platform, the oldest first. */
  operations = (from = 0): string[] => this.platform.requests.slice(from).map(({ operation }) => operation);

  /** Replaces the platform's answers to one operation. */
  replaceAnswers = (operation: string, answer: Fault): void => {
    this.platform.fault = (info) => (info.operation === operation ? answer : undefined);
  };

  /** The entries of the program's log that contain a text. */
  logged = (text: string): Record<string, unknown>[] =>
    this.test.logged.filter((line) => line.includes(text)).map((line) => JSON.parse(line) as Record<string, unknown>);
}

/**
 * Returns the time at which the first platform webhook stops waiting for others about its subject. Returns undefined if
 * no webhook waits.
 */
async function nextBurstEnd({ test, shop }: ConnectedShop): Promise<number | undefined> {
  const { ms } = test.clock;
  const entries = await test.app.store.inbox.list(shop.shop.id, { limit: 1_000, status: "waiting" });
  const ends = entries.flatMap(({ attempts, nextAttemptAt }) => (attempts === 0 ? [nextAttemptAt ?? 0] : []));
  const later = ends.filter((at) => at > ms && at <= ms + LONGEST_BURST_MS);
  return later.length === 0 ? undefined : Math.min(...later);
}

/** Makes a contract at the platform, with a new customer unless one is given. @returns its gid */
export function createContract(remote: PlatformShop, fields: Partial<ContractInput> = {}): string {
  const customer = fields.customer ?? remote.createCustomer({ email: "a@example.com" });
  return remote.createContract({ lines: [LINE], ...fields, customer });
}

/** The platform's answer with these data, or with errors. */
export function answerWith(data: unknown, errors?: readonly object[]): Fault {
  return { status: 200, body: JSON.stringify({ data, errors }) };
}

/** The program and the stand-in, with one shop connected by the app's credentials. */
export async function connected(
  env: Record<string, string> = {},
  options: Parameters<typeof StandIn.start>[0] = {},
): Promise<ConnectedShop> {
  // The program and the stand-in share this clock, which the test moves.
  let now = () => START;
  const platform = await standIn({ now: () => now(), ...options });
  platform.app.deploy(appFiles(platform.address, "client")["shopify.app.toml"] ?? "");
  platform.addShop(DOMAIN);
  const all = await connectedTo(platform, env);
  now = all.test.clock.now;
  return all;
}

/** The settings of a program that is an app of this platform. The app's secret is SECRET. */
export function platformEnv({ url }: { url: string }): Record<string, string> {
  const secretFile = join(temporaryFolder(), "secret");
  writeFileSync(secretFile, SECRET, { mode: 0o600 });
  return { SDS_PLATFORM_URL: url, SDS_PLATFORM_CLIENT_ID: "client", SDS_PLATFORM_SECRET_FILE: secretFile };
}

/** A new program with an empty mirror, connected to the shop of this stand-in. */
export async function connectedTo(
  platform: StandIn,
  env: Record<string, string> = {},
  at = START,
): Promise<ConnectedShop> {
  const test = await testApp({ ...platformEnv(platform), ...env });
  test.clock.ms = at;
  const shop = await test.addShop(DOMAIN);
  await test.app.platform.connect(DOMAIN, { kind: "client_credentials" });
  return new ConnectedShop(test, platform, shop);
}

/** A connected shop with a contract. */
export async function withContract(fields: Partial<ContractInput> = {}) {
  const all = await connected();
  return { all, contract: all.createContract(fields) };
}

/** A connected shop with a contract that the mirror has too. */
export async function withMirroredContract(fields: Partial<ContractInput> = {}) {
  const made = await withContract(fields);
  await made.all.deliverAll();
  return made;
}

/** A connected shop whose contracts are at least an hour old. */
export async function seeded(seeding: Seeding): Promise<ConnectedShop> {
  const all = await connected();
  all.remote.seed(seeding);
  all.test.clock.ms += HOUR_MS;
  return all;
}

/** Like `seeded`. The shop was loaded an hour ago. */
export async function seededAndLoaded(seeding: Seeding): Promise<ConnectedShop> {
  const all = await seeded(seeding);
  await all.load();
  all.test.clock.ms += HOUR_MS;
  return all;
}
