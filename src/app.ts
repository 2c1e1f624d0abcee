import { Cron } from "croner";
import { type Config, httpAddress } from "./config.ts";
import type { Resolve } from "./delivery/address.ts";
import { deliverer } from "./delivery/deliverer.ts";
import { Sender } from "./delivery/sender.ts";
import { messageOf, SdsError } from "./domain/error.ts";
import { adminHandler } from "./http/admin/routes.tsx";
import { ApiKeyAuthenticator } from "./http/api-key-authenticator.ts";
import { intakeHandler } from "./http/intake.ts";
import { listHandler } from "./http/list.ts";
import { httpApp } from "./http/server.ts";
import { platformHandler } from "./http/shopify-webhooks.ts";
import type { Sleep } from "./lib/sleep.ts";
import type { Log } from "./log.ts";
import { RecordWriter } from "./mirror/record-writer.ts";
import { createInboxWriter } from "./shopify/inbox/inbox-writer.ts";
import { InboxProcessor } from "./shopify/inbox/processor.ts";
import { createVerifier } from "./shopify/inbox/verify.ts";
import { openPlatform, type Platform } from "./shopify/open-platform.ts";
import { createReconciler, type Reconciler } from "./shopify/sync/reconciler.ts";
import { createWorkflowStarter } from "./shopify/workflow.ts";
import { openStore, type Store } from "./store/store.ts";

/** What the program takes from outside itself; tests put others in their place. */
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
  /** Takes no more work, ends what runs, writes what is pending. May be called twice. */
  stop(): Promise<void>;
}

/** The platform sends a webhook again for four hours, and at times a day late. */
const REMEMBER_WEBHOOKS = 7 * 24 * 3_600_000;
/** contract.md 2.10. */
const KEEP_DELIVERED = 30 * 24 * 3_600_000;
/** How long a stop waits for requests that are under way, a stalled upload for one. Milliseconds. */
const REQUESTS_MAY_TAKE = 5_000;
/** How long one look at the database speaks for /readyz, so that asking often costs nothing. Milliseconds. */
const READY_FOR = 1_000;

/** Puts the program together. */
export async function openApp(config: Config, dependencies: Dependencies): Promise<App> {
  const { now, random, fetch, resolve, log } = dependencies;
  const store = await openStore({ folder: config.data, masterKeyFile: config.masterKeyFile, busyTimeout: 2_000, random });
  const { shops, connections, syncs } = store;
  const { deliveryConcurrency: concurrency, deliveryPerShop: perShop, deliveryTimeout: timeout, retryWaits: waits } = config;
  const recordWriter: RecordWriter = new RecordWriter(store.mirror, now, () => sender.wake());
  const platform = openPlatform(config, store, recordWriter, dependencies);
  const startWorkflow = createWorkflowStarter({ client: platform.client, shops, timeoutMs: timeout });
  const deliver = deliverer(store.webhooks, { fetch, resolve, allow: config.egressAllow, timeout }, startWorkflow);
  const sender = new Sender(store.deliveries, deliver, { concurrency, perShop, timeout, waits }, now, log);
  const processor = new InboxProcessor(store, platform.handler, now, log);
  const inboxWriter = createInboxWriter(store.inbox, now, () => processor.wake());
  const reconciler = createReconciler({ shops, connections, syncs, synchronizer: platform.synchronizer, now, log });
  const authenticator = new ApiKeyAuthenticator(store.keys, now, log);
  const readiness = new Readiness(store, sender, now);
  const server = httpApp(
    {
      list: listHandler(store.pages, authenticator),
      intake: intakeHandler(store.shops, recordWriter),
      platform: platformHandler(createVerifier(config.platformSecretFile), store.shops, inboxWriter, log, now),
      admin: adminHandler({ store, now, random, resolve, allow: config.egressAllow, publicUrl: config.publicUrl, wake: () => sender.wake(), log }),
      notReady: () => readiness.reason(),
    },
    log,
  );
  const jobs = [
    job("* * * * * *", "write when keys were last used", () => authenticator.writeUses(), log),
    job("30 * * * * *", "shorten the write-ahead log", () => store.checkpoint(), log),
    job("* * * * * *", "look for due deliveries", async () => sender.wake(), log),
    job("* * * * * *", "look into the inbox", async () => processor.wake(), log),
    job("40 * * * * *", "reconcile mirrors with the platform", () => reconciler.begin(), log),
    job("0 10 * * * *", "forget old deliveries", () => store.deliveries.prune(now() - KEEP_DELIVERED), log),
    job("0 0 * * * *", "forget old webhooks", () => store.inbox.forgetReceipts(now() - REMEMBER_WEBHOOKS), log),
  ];
  let stopped: Promise<void> | undefined;
  let address: string | undefined;

  async function stop(): Promise<void> {
    readiness.stopping = true;
    for (const each of jobs) each.stop();
    const sent = sender.stop();
    if (server.server !== null) {
      const timer = setTimeout(() => server.stop(true), REQUESTS_MAY_TAKE);
      await server.stop();
      clearTimeout(timer);
    }
    await inboxWriter.drain();
    // What waits for the platform fails, and is in the inbox still.
    const asked = platform.stop();
    await Promise.all([asked, processor.stop(), reconciler.stop()]);
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
        throw new SdsError("failed", `cannot listen on ${config.host} port ${config.port}: ${messageOf(thrown)}`, { cause: thrown });
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

/** A job that never runs twice at once and never ends the program: what it throws is logged, and the next tick tries again. */
function job(pattern: string, name: string, run: () => Promise<void>, log: Log): Cron {
  const report = (thrown: unknown) => log.error(`cannot ${name}`, { error: messageOf(thrown) });
  return new Cron(pattern, { paused: true, protect: true, catch: report }, run);
}

class Readiness {
  stopping = false;
  private readonly store: Store;
  private readonly sender: Sender;
  private readonly now: () => number;
  private checkedAt = Number.NEGATIVE_INFINITY;
  private failure: string | undefined;

  constructor(store: Store, sender: Sender, now: () => number) {
    this.store = store;
    this.sender = sender;
    this.now = now;
  }

  async reason(): Promise<string | undefined> {
    if (this.stopping) return "The program is stopping.";
    if (this.now() - this.checkedAt >= READY_FOR) {
      this.checkedAt = this.now();
      this.failure = await this.store.check().then(
        () => undefined,
        () => "The database cannot be written.",
      );
    }
    return this.failure ?? (this.sender.failing ? "Deliveries cannot be recorded." : undefined);
  }
}
