import { Cron } from "croner";
import { type Config, httpAddress } from "./config.ts";
import type { Resolve } from "./delivery/address.ts";
import { createDeliverer } from "./delivery/deliverer.ts";
import { createSender, type Sender } from "./delivery/sender.ts";
import { messageOf, SdsError } from "./domain/error.ts";
import { adminRoutes } from "./http/admin/routes.tsx";
import { createApiKeyAuthenticator } from "./http/api-key-authenticator.ts";
import { createIntakeHandler } from "./http/intake.ts";
import { createListHandler } from "./http/list.ts";
import { createReadiness } from "./http/readiness.ts";
import { createRoutes } from "./http/routes.ts";
import { createHttpApp } from "./http/server.ts";
import { createPlatformWebhookHandler } from "./http/shopify-webhooks.ts";
import type { Sleep } from "./lib/sleep.ts";
import type { Log } from "./log.ts";
import { createRecordWriter, type RecordWriter } from "./mirror/record-writer.ts";
import { createInboxWriter } from "./shopify/inbox/inbox-writer.ts";
import { createInboxProcessor, type InboxProcessor } from "./shopify/inbox/processor.ts";
import { createVerifier } from "./shopify/inbox/verify.ts";
import { openPlatform, type Platform } from "./shopify/open-platform.ts";
import { createReconciler, type Reconciler } from "./shopify/sync/reconciler.ts";
import { createWorkflowStarter } from "./shopify/workflow.ts";
import { openStore } from "./store/open-store.ts";
import type { Store } from "./store/store.ts";

/** Clock, randomness, network and log. Tests pass fakes. */
export interface Dependencies {
  now: () => number;
  random: (bytes: number) => Uint8Array;
  fetch: typeof fetch;
  resolve: Resolve;
  sleep: Sleep;
  log: Log;
}

export interface App {
  store: Store;
  sender: Sender;
  processor: InboxProcessor;
  reconciler: Reconciler;
  platform: Platform;
  /** Answers a request without a socket. */
  handle(request: Request): Promise<Response>;
  /** Listens; resolves to the address. @throws SdsError `failed` if the port is taken */
  start(): Promise<string>;
  /** Accepts no new work, waits for the work that runs, and writes what is pending. May be called twice. */
  stop(): Promise<void>;
}

/**
 * How long the ids of platform webhooks are remembered. The platform repeats a webhook for four hours, and sometimes
 * sends one a day late.
 */
const RECEIPT_RETENTION_MS = 7 * 24 * 3_600_000;
/** How long delivered webhooks stay in the log (docs/operating.md, "Retention"). */
const DELIVERED_RETENTION_MS = 30 * 24 * 3_600_000;
/** How long a stop waits for running requests, such as a stalled upload. */
const REQUEST_STOP_TIMEOUT_MS = 5_000;

/**
 * Puts the program together.
 * @throws SdsError `failed` with what is wrong with the folder, the database or the master key
 */
export async function openApp(config: Config, dependencies: Dependencies): Promise<App> {
  const { now, random, resolve, sleep, log } = dependencies;
  const store = await openStore({
    folder: config.data,
    masterKeyFile: config.masterKeyFile,
    busyTimeoutMs: 2_000,
    random,
  });
  const {
    deliveryConcurrency: concurrency,
    deliveryPerShop: perShop,
    deliveryTimeoutMs: timeoutMs,
    retryWaitsMs: waitsMs,
  } = config;
  const recordWriter: RecordWriter = createRecordWriter(store.mirror, now, () => sender.wake());
  const platform = openPlatform(config, store, recordWriter, dependencies);
  const startWorkflow = createWorkflowStarter({ client: platform.client, shops: store.shops, timeoutMs });
  const attempt = createDeliverer(store.webhooks, { resolve, allow: config.egressAllow, timeoutMs }, startWorkflow);
  const { deliveries, inbox, shops, connections, syncs } = store;
  const sender = createSender({ deliveries, attempt, now, sleep, log }, { concurrency, perShop, timeoutMs, waitsMs });
  const { handler } = platform;
  const processor = createInboxProcessor({
    inbox,
    shops,
    handle: (shop, items) => handler.handle(shop, items),
    now,
    sleep,
    log,
  });
  const inboxWriter = createInboxWriter(store.inbox, now, () => processor.wake());
  const reconciler = createReconciler({ shops, connections, syncs, synchronizer: platform.synchronizer, now, log });
  const authenticator = createApiKeyAuthenticator(store.keys, now, log);
  const readiness = createReadiness(store, sender, now);
  const routes = createRoutes({
    list: (resource) => createListHandler(resource, store.pages, authenticator),
    intake: createIntakeHandler(store.shops, recordWriter),
    platformWebhook: createPlatformWebhookHandler(
      createVerifier(config.platformSecretFile),
      store.shops,
      inboxWriter,
      log,
      now,
    ),
    admin: adminRoutes({
      store,
      now,
      random,
      resolve,
      allow: config.egressAllow,
      publicUrl: config.publicUrl,
      wake: () => sender.wake(),
      log,
    }),
    notReady: () => readiness.reason(),
  });
  const server = createHttpApp(routes, log);
  const jobs = [
    job("* * * * * *", "write when API keys were last used", () => authenticator.writeUses(), log),
    job("30 * * * * *", "shorten the write-ahead log", () => store.checkpoint(), log),
    job("* * * * * *", "send due deliveries", async () => sender.wake(), log),
    job("* * * * * *", "process platform webhooks", async () => processor.wake(), log),
    job("40 * * * * *", "reconcile mirrors with the platform", () => reconciler.begin(), log),
    job("0 10 * * * *", "remove old deliveries", () => store.deliveries.prune(now() - DELIVERED_RETENTION_MS), log),
    job(
      "0 0 * * * *",
      "forget the ids of old platform webhooks",
      () => store.inbox.forgetReceipts(now() - RECEIPT_RETENTION_MS),
      log,
    ),
  ];
  let stopped: Promise<void> | undefined;
  let address: string | undefined;

  async function stop(): Promise<void> {
    readiness.noteStop();
    for (const each of jobs) each.stop();
    const sent = sender.stop();
    if (server.server !== null) {
      const timer = setTimeout(() => server.stop(true), REQUEST_STOP_TIMEOUT_MS);
      await server.stop();
      clearTimeout(timer);
    }
    await inboxWriter.drain();
    // Work that waits for the platform fails now. Its platform webhooks stay in the inbox.
    await Promise.all([platform.stop(), processor.stop(), reconciler.stop()]);
    await recordWriter.drain();
    await sent;
    await authenticator.writeUses({ all: true });
    if (address !== undefined) await store.sessions.forgetAddress(address).catch(() => undefined);
    await store.close();
  }

  return {
    store,
    sender,
    processor,
    reconciler,
    platform,
    handle: async (request) => server.handle(request),
    async start() {
      try {
        server.listen({ hostname: config.host, port: config.port });
      } catch (thrown) {
        throw new SdsError("failed", `cannot listen on ${config.host} port ${config.port}: ${messageOf(thrown)}`, {
          cause: thrown,
        });
      }
      for (const each of jobs) each.resume();
      address = httpAddress(config.host, server.server?.port);
      await store.sessions.noteAddress(address);
      return address;
    },
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

/**
 * A job that never runs twice at the same time. Its errors are logged and do not end the program; the next tick runs it
 * again.
 */
function job(pattern: string, name: string, run: () => Promise<void>, log: Log): Cron {
  const report = (thrown: unknown) => log.error(`cannot ${name}`, { error: messageOf(thrown) });
  return new Cron(pattern, { paused: true, protect: true, catch: report }, run);
}
