import { hostname } from "node:os";
import { version } from "../../package.json";
import { type Config, httpAddress } from "../config.ts";
import type { Resolve } from "../delivery/address.ts";
import type { Sender } from "../delivery/sender.ts";
import { messageOf, SdsError } from "../domain/error.ts";
import { createCheckpoints } from "../domain/pages/checkpoint.ts";
import { adminRoutes } from "../http/admin/routes.ts";
import { createBodyReader } from "../http/body.ts";
import { createClients } from "../http/client-network.ts";
import { docsRoutes } from "../http/docs/routes.ts";
import { createEntityTags } from "../http/entity-tags.ts";
import { createIntakeHandler } from "../http/intake.ts";
import { createOpenApiHandler } from "../http/openapi/handler.ts";
import { createAnswerCache } from "../http/read/answer-cache.ts";
import { createApiKeyAuthenticator } from "../http/read/api-key-authenticator.ts";
import { createKeyLimits } from "../http/read/key-limits.ts";
import { createLargePages } from "../http/read/large-page.ts";
import { createListHandler } from "../http/read/list.ts";
import { createReadApi } from "../http/read/read-api.ts";
import { createRowHandler } from "../http/read/row.ts";
import { createWrongKeyLog } from "../http/read/wrong-key-log.ts";
import { createReadiness } from "../http/readiness.ts";
import { createRoutes } from "../http/routes.ts";
import { createHttpApp } from "../http/server.ts";
import { createPlatformWebhookHandler } from "../http/shopify-webhooks.ts";
import { createDescriptorReserve, reservedFetch } from "../lib/descriptor-reserve.ts";
import { createReaderQueue } from "../lib/reader-queue.ts";
import { createSteadyTime } from "../lib/time.ts";
import type { InboxProcessor } from "../shopify/inbox/processor.ts";
import { createVerifier } from "../shopify/inbox/verify.ts";
import type { Platform } from "../shopify/open-platform.ts";
import type { Reconciler } from "../shopify/sync/reconciler.ts";
import { createOutageLog, type OutageLog } from "../store/engine/outage-log.ts";
import { openStore } from "../store/open-store.ts";
import type { Store } from "../store/port/store.ts";
import { failureFields } from "../store/port/store-error.ts";
import { createJobs } from "./jobs.ts";
import { type AppResources, type Dependencies, openMembership, openWork, SPARE_DESCRIPTORS } from "./work.ts";

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

/** Descriptors that a name look-up opens: a file, then a socket for each of two name servers. */
const LOOK_UP_DESCRIPTORS = 2;
const SHORTAGE_LOG_INTERVAL_MS = 60_000;
/** How long a stop waits for running requests, such as a stalled upload. */
const REQUEST_STOP_TIMEOUT_MS = 5_000;

/**
 * Puts the program together.
 * @throws SdsError `failed` with what is wrong with the folder, the database or the master key
 */
export async function openApp(config: Config, dependencies: Dependencies): Promise<App> {
  const { clock, random } = dependencies;
  const log = createOutageLog(dependencies.log, clock);
  const reserve = createDescriptorReserve({
    wanted: config.deliveryConcurrency + SPARE_DESCRIPTORS,
    onShortage: () => noteShortage(),
  });
  const fetch = reservedFetch(reserve, dependencies.fetch);
  const resolve: Resolve = async (host) =>
    reserve.withSpare(() => dependencies.resolve(host), LOOK_UP_DESCRIPTORS).finally(reserve.refill);
  const store = await openStore({
    folder: config.data,
    masterKeyFile: config.masterKeyFile,
    busyTimeoutMs: 2_000,
    random,
    server: config.database === null ? null : { ...config.database, now: dependencies.now, sleep: dependencies.sleep },
  });
  const resources = { ...dependencies, log, fetch, resolve, config, store, reserve };
  const membership = openMembership(resources, () => work.wakeAll());
  const work = openWork({ ...resources, membership });
  const http = openHttp(resources, work);
  const { server } = http;
  let shortageLoggedAt = Number.NEGATIVE_INFINITY;

  /** Clients have all descriptors but the reserve. Those that wait for nothing lose their connection. */
  function noteShortage(): void {
    const closed = server.server?.closeIdleConnections() ?? 0;
    if (clock() - shortageLoggedAt < SHORTAGE_LOG_INTERVAL_MS) return;
    shortageLoggedAt = clock();
    log.warn("all file descriptors for connections are in use: new clients have to wait", { closedIdle: closed });
  }

  return {
    store,
    sender: work.sender,
    processor: work.processor,
    reconciler: work.reconciler,
    platform: work.platform,
    handle: async (request) => server.handle(request),
    ...createLifecycle(resources, work, http),
  };
}

type Work = ReturnType<typeof openWork>;
type Http = ReturnType<typeof openHttp>;

/** The routes and the server, which does not listen yet. */
function openHttp({ config, store, random, resolve, now, clock, log }: AppResources & { log: OutageLog }, work: Work) {
  const { gauge, recordWriter, bodyWriter, largeBodies, inboxWriter, sender } = work;
  const { shops } = store;
  const readers = createReaderQueue(gauge);
  const largePages = createLargePages();
  const wrongKeys = createWrongKeyLog(clock, log);
  const authenticator = createApiKeyAuthenticator({ store: store.keys, now, clock, log, wrongKeys });
  const readApi = createReadApi({
    clock,
    authenticator,
    keyLimits: createKeyLimits(config.rateLimit, clock),
    entityTags: createEntityTags(version, store.epoch),
    answers: createAnswerCache(),
    readers,
    largePages,
  });
  const checkpoints = createCheckpoints(store.epoch, now);
  const readiness = createReadiness({ store, sender, clock, log });
  const bodies = createBodyReader();
  const verify = createVerifier(config.platformSecretFile);
  const steadyTime = createSteadyTime(now, clock);
  const routes = createRoutes({
    list: (resource) => createListHandler(resource, store.pages, checkpoints, readApi),
    row: (resource) => createRowHandler(resource, store.pages, readApi),
    intake: createIntakeHandler({ bodies, shops, recordWriter, bodyWriter, largeBodies, load: gauge }),
    platformWebhook: createPlatformWebhookHandler({ bodies, verify, shops, inboxWriter, load: gauge, log, now }),
    openApi: createOpenApiHandler(() => config.publicUrl ?? reachable(config.host, server.server?.port)),
    admin: adminRoutes({
      store,
      bodies,
      now,
      steadyTime,
      random,
      resolve,
      allow: config.egressAllow,
      publicUrl: config.publicUrl,
      wake: () => sender.wake(),
      log,
    }),
    docs: docsRoutes(),
    notReady: () => readiness.reason(),
  });
  const server = createHttpApp(routes, createClients(config.trustedProxies), log);
  return {
    server,
    authenticator,
    readiness,
    wrongKeys,
    steadyTime,
  };
}

/** Where clients on this machine reach the program. An address that stands for all of the machine's is none. */
function reachable(host: string, port: number | undefined): string {
  return port === undefined || ["0.0.0.0", "::"].includes(host) ? "/" : httpAddress(host, port);
}

/** Starts and stops everything, each part before what it uses. */
function createLifecycle(resources: AppResources, work: Work, http: Http): Pick<App, "start" | "stop"> {
  const { config, store, reserve, log } = resources;
  const { server, authenticator, readiness } = http;
  const jobs = createJobs({ ...resources, ...work, ...http });
  let stopped: Promise<void> | undefined;
  let address: string | undefined;

  /** Without it, new sign-in links name an address of the settings, which is right in most cases. */
  async function noteAddress(at: string): Promise<void> {
    try {
      await store.sessions.noteAddress(at);
    } catch (thrown) {
      log.warn("cannot note the address for sign-in links", failureFields(thrown));
    }
  }

  /** Without the balancer's address, a sign-in link would lead to the node that started last. */
  function checkPublicUrl(): void {
    if (config.publicUrl === null && work.membership.nodes > 1)
      log.warn("several nodes serve this database: set SDS_PUBLIC_URL to the address of all of them");
  }

  function refuseStopped(): void {
    if (stopped !== undefined) throw new SdsError("failed", "it was stopped while it started");
  }

  async function stop(): Promise<void> {
    readiness.noteStop();
    for (const each of jobs) each.stop();
    const sent = work.sender.stop();
    if (server.server !== null) {
      const timer = setTimeout(() => server.stop(true), REQUEST_STOP_TIMEOUT_MS);
      await server.stop();
      clearTimeout(timer);
    }
    await work.inboxWriter.drain();
    // Work that waits for the platform fails now. Its platform webhooks stay in the inbox.
    await Promise.all([work.platform, work.processor, work.reconciler, work.remover].map((each) => each.stop()));
    // A request whose connection was closed may still use the store.
    await Promise.all([work.largeBodies.stop(), work.bodyWriter.stop()]);
    await work.recordWriter.drain();
    // Deliveries that run have leases of their own.
    await work.membership.leave();
    await sent;
    await authenticator.writeUses({ all: true });
    if (address !== undefined) await store.sessions.forgetAddress(address).catch(() => undefined);
    reserve.stop();
    await store.close();
  }

  return {
    async start() {
      // A body that was interrupted is applied first, so that nobody sees half of it unless that takes long.
      await work.bodyWriter.resume();
      refuseStopped();
      try {
        server.listen({ hostname: config.host, port: config.port });
      } catch (thrown) {
        throw new SdsError("failed", `cannot listen on ${config.host} port ${config.port}: ${messageOf(thrown)}`, {
          cause: thrown,
        });
      }
      reserve.start();
      address = httpAddress(config.host, server.server?.port);
      store.nodes?.describe({ address, host: hostname(), processId: process.pid, version });
      await work.membership.beat();
      refuseStopped();
      for (const each of jobs) each.resume();
      await noteAddress(address);
      checkPublicUrl();
      return address;
    },
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}
