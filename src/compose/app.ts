import { hostname } from "node:os";
import type { Cron } from "croner";
import { version } from "../../package.json";
import type { Membership } from "../cluster/membership.ts";
import type { Config } from "../config.ts";
import type { Resolve } from "../delivery/address.ts";
import { cannotListen, SdsError } from "../domain/error.ts";
import { createCheckpoints } from "../domain/pages/checkpoint.ts";
import { adminRoutes } from "../http/admin/routes.ts";
import { alertRoutes } from "../http/alert-links.tsx";
import { appRoutes } from "../http/app/routes.ts";
import { createTokenDoor } from "../http/app/token-door.ts";
import { createBodyReader } from "../http/body.ts";
import { createClients } from "../http/client-network.ts";
import { docsRoutes, respondUnknown } from "../http/docs/routes.ts";
import { createEntityTags } from "../http/entity-tags.ts";
import { createIntakeHandler } from "../http/intake.ts";
import { createForwarder } from "../http/intake-forward.ts";
import { createOpenApiHandler } from "../http/openapi/document.ts";
import { createAnswerCache } from "../http/read/answer-cache.ts";
import { createApiKeyAuthenticator } from "../http/read/api-key-authenticator.ts";
import { createLargePages } from "../http/read/large-page.ts";
import { createReadApi } from "../http/read/read-api.ts";
import { createListHandler, createRowHandler } from "../http/read/rows.ts";
import { createShopHandler } from "../http/read/shop.ts";
import { createWrongKeyLog } from "../http/read/wrong-key-log.ts";
import { createReadiness } from "../http/readiness.ts";
import { createRequestLimits } from "../http/request-limits.ts";
import { createRequestLog } from "../http/request-log.ts";
import { createRoutes } from "../http/routes.ts";
import { createHttpApp } from "../http/server.ts";
import { createPlatformWebhookHandler } from "../http/shopify-webhooks.ts";
import { createWidgetStyleHandler } from "../http/storefront.ts";
import { createDescriptorReserve, reservedFetch } from "../lib/descriptor-reserve.ts";
import { browsable, httpAddress } from "../lib/networks.ts";
import { createReaderQueue } from "../lib/reader-queue.ts";
import { createSteadyTime } from "../lib/time.ts";
import { createAppSecrets } from "../shopify/api/app-secrets.ts";
import { createVerifier } from "../shopify/inbox/verify.ts";
import { createOutageLog, type OutageLog } from "../store/engine/outage-log.ts";
import { openStore } from "../store/open-store.ts";
import type { Store } from "../store/port/store.ts";
import { failureFields } from "../store/port/store-error.ts";
import { startJobs } from "./jobs.ts";
import type { Metrics } from "./metrics.ts";
import { type Monitor, openMonitor } from "./monitor.ts";
import {
  type AppDependencies,
  type AppResources,
  openMembership,
  openWork,
  SPARE_DESCRIPTORS,
  type Work,
} from "./work.ts";

export interface App extends Pick<Work, "sender" | "processor" | "reconciler" | "firstLoader" | "teller" | "platform"> {
  store: Store;
  /** Answers a request without a socket. */
  handle(request: Request): Promise<Response>;
  /** Listens, and resolves to the address. @throws SdsError `failed` if the port is taken */
  start(): Promise<string>;
  /** Returns where the metrics are served; undefined without SDS_METRICS. */
  metricsUrl(): string | undefined;
  /** Takes no new work, waits for running work, and writes pending records. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Maximum number of file descriptors that a DNS look-up holds at once. A look-up first opens and closes a file, and
 * then opens a socket for each of two name servers.
 */
const LOOK_UP_DESCRIPTORS = 2;
const SHORTAGE_LOG_INTERVAL_MS = 60_000;
/** How long a stop waits for running requests. */
const REQUEST_STOP_TIMEOUT_MS = 5_000;
/** Rate limit of posted forms and of views of rows on a shop's settings page. A person is too slow to reach it. */
const ACTION_LIMIT = { perSecond: 1, burst: 300 };

/** Assembles the program. @throws SdsError `failed` if the folder, the database or the master key cannot be used */
export async function openApp(config: Config, dependencies: AppDependencies): Promise<App> {
  const { now, clock, random, sleep } = dependencies;
  const log = createOutageLog(dependencies.log, clock);
  const reserve = createDescriptorReserve({ wanted: config.deliveryConcurrency + SPARE_DESCRIPTORS, onShortage });
  const fetch = reservedFetch(reserve, dependencies.fetch);
  const resolve: Resolve = async (host) =>
    reserve.withSpare(() => dependencies.resolve(host), LOOK_UP_DESCRIPTORS).finally(reserve.refill);
  const store = await openStore({
    folder: config.data,
    masterKeyFile: config.masterKeyFile,
    busyTimeoutMs: 2_000,
    now,
    random,
    upgradeAlone: true,
    upgradeCopy: config.upgradeCopy,
    onUpgrade: ({ from, to, copy }) => log.info("upgraded the database", { fromSchema: from, toSchema: to, copy }),
    serveProcess: process.pid,
    server: config.database === null ? null : { ...config.database, log, clock, sleep },
  });
  const resources = { ...dependencies, log, fetch, resolve, config, store, reserve };
  const membership = openMembership(resources, () => work.wakeAll());
  const monitor = openMonitor(resources, {
    isReady: () => http.readiness.isReady,
    fewestPoints: () => work.platform.client.fewestPoints(),
  });
  const work = openWork({ ...resources, membership, observer: monitor?.metrics });
  const http = openHttp({ ...resources, membership }, work, monitor?.metrics);
  const { server } = http;
  let shortageLoggedAt = Number.NEGATIVE_INFINITY;

  /** Closes idle connections, because clients have taken all file descriptors outside the reserve. */
  function onShortage(): void {
    const closed = server.server?.closeIdleConnections() ?? 0;
    if (clock() - shortageLoggedAt < SHORTAGE_LOG_INTERVAL_MS) return;
    shortageLoggedAt = clock();
    log.warn("all file descriptors for connections are in use: new clients have to wait", { closedIdle: closed });
  }

  const { sender, processor, reconciler, firstLoader, teller, platform } = work;
  const handle = async (request: Request) => server.handle(request);
  const lifecycle = createLifecycle({ ...resources, ...work, ...http, monitor });
  const metricsUrl = () => monitor?.url;
  return { store, sender, processor, reconciler, firstLoader, teller, platform, handle, metricsUrl, ...lifecycle };
}

type Http = ReturnType<typeof openHttp>;

type HttpResources = AppResources & { log: OutageLog; membership: Membership };

/** Creates the routes and the server. The server does not listen yet. */
function openHttp(resources: HttpResources, work: Work, metrics: Metrics | undefined) {
  const { config, store, random, resolve, now, clock, log } = resources;
  const { gauge, recordWriter, inboxWriter, sender, platform } = work;
  const { shops, moves } = store;
  const readers = createReaderQueue(gauge);
  const wrongKeys = createWrongKeyLog(clock, log);
  const authenticator = createApiKeyAuthenticator({ store: store.keys, now, clock, log, wrongKeys });
  const readApi = createReadApi({
    clock,
    authenticator,
    keyLimits: createRequestLimits(config.rateLimit, clock),
    entityTags: createEntityTags(version, store.epoch),
    answers: createAnswerCache(),
    readers,
    largePages: createLargePages(),
  });
  const shopIds = async () => (await shops.list()).map(({ id }) => id);
  const checkpoints = createCheckpoints({ ...store, ...shops, ...moves, shopIds, now });
  const lists = { pagesFor: store.pagesFor, checkpoints, api: readApi, publicUrl: config.publicUrl, log };
  const readiness = createReadiness({ store, sender, clock, log });
  const bodies = createBodyReader();
  const forward = createForwarder({ ...resources, ownerUrl: resources.membership.ownerUrl });
  const verify = createVerifier(createAppSecrets(config.platformSecretFile));
  const steadyTime = createSteadyTime(now, clock);
  const page = {
    ...{ store, bodies, recordWriter, now, steadyTime, random, resolve, log },
    allow: config.egressAllow,
    publicUrl: config.publicUrl,
    address: () => config.publicUrl ?? browsable(httpAddress(config.host, server.server?.port)),
    keepDeliveredMs: config.keepDeliveredMs,
    sendsMail: config.smtpUrlFile !== null,
    actionLimits: createRequestLimits(ACTION_LIMIT, clock),
    wake: () => sender.wake(),
  };
  const routes = createRoutes({
    list: (resource) => createListHandler(resource, lists),
    row: (resource) => createRowHandler(resource, store.pagesFor, readApi),
    shop: createShopHandler(shops, readApi),
    intake: createIntakeHandler({ bodies, shops, moves, recordWriter, load: gauge, forward }),
    platformWebhook: createPlatformWebhookHandler({
      bodies,
      verify,
      ...store,
      inboxWriter,
      warnings: platform.warnings,
      load: gauge,
      log,
      now,
    }),
    openApi: createOpenApiHandler(() => config.publicUrl ?? reachable(config.host, server.server?.port)),
    widgetStyle: createWidgetStyleHandler(store.styles, log),
    admin: adminRoutes(page),
    app: appRoutes(page, createTokenDoor({ ...page, ...store, ...platform, clientId: config.platformClientId })),
    alerts: alertRoutes({ store, now }),
    docs: docsRoutes(),
    notReady: () => readiness.reason(),
  });
  metrics?.addRoutes(routes);
  const server = createHttpApp(routes, createClients(config.trustedProxies), log, {
    unknown: respondUnknown,
    needsAddress: config.logRequests,
    observers: [...(metrics ? [metrics.noteAnswer] : []), ...(config.logRequests ? [createRequestLog(log)] : [])],
  });
  return { server, authenticator, readiness, wrongKeys, steadyTime };
}

/**
 * Returns the address for clients on this machine. For wildcard addresses (0.0.0.0, ::) returns the relative address
 * `/`.
 */
function reachable(host: string, port: number | undefined): string {
  return port === undefined || ["0.0.0.0", "::"].includes(host) ? "/" : httpAddress(host, port);
}

type Program = AppResources & Work & Http & { monitor: Monitor | undefined };

/** Starts and stops the program. A part stops before the parts that it uses. */
function createLifecycle(program: Program): Pick<App, "start" | "stop"> {
  const { config, store, reserve, membership, server, monitor } = program;
  let jobs: readonly Cron[] = [];
  let stopped: Promise<void> | undefined;
  let address: string | undefined;

  function refuseStopped(): void {
    if (stopped !== undefined) throw new SdsError("failed", "it was stopped while it started");
  }

  return {
    async start() {
      refuseStopped();
      // The metrics listen first. So a wrong setting makes the start fail before anybody is served.
      monitor?.listen();
      listen(program);
      reserve.start();
      address = httpAddress(config.host, server.server?.port);
      store.nodes?.describe({ address, host: hostname(), processId: process.pid, version, url: config.nodeUrl });
      await membership.beat();
      refuseStopped();
      jobs = startJobs(program);
      await noteAddress(program, address);
      // This call logs at once if the program is not ready, for instance because the disk is full.
      await program.readiness.reason();
      void monitor?.refresh();
      return address;
    },
    stop() {
      stopped ??= stopAll(program, jobs, address);
      return stopped;
    },
  };
}

function listen({ config: { host, port }, server }: Program): void {
  try {
    server.listen({ hostname: host, port });
  } catch (thrown) {
    throw cannotListen(host, port, thrown);
  }
}

/** Stores the address for sign-in links. Without a stored address, the links use the address of the settings. */
async function noteAddress({ config, store, membership, log }: Program, address: string): Promise<void> {
  try {
    await store.sessions.noteAddress(address);
  } catch (thrown) {
    log.warn("cannot note the address for sign-in links", failureFields(thrown));
  }
  // Without the load balancer's address, a sign-in link would lead to the node that started last.
  if (config.publicUrl === null && membership.nodes > 1)
    log.warn("several nodes serve this database: set SDS_PUBLIC_URL to the address of all of them");
}

async function stopAll(program: Program, jobs: readonly Cron[], address: string | undefined): Promise<void> {
  const {
    store,
    reserve,
    server,
    authenticator,
    readiness,
    platform,
    processor,
    reconciler,
    firstLoader,
    remover,
    teller,
  } = program;
  readiness.noteStop();
  for (const job of jobs) job.stop();
  const sent = program.sender.stop();
  if (server.server !== null) {
    const timer = setTimeout(() => server.stop(true), REQUEST_STOP_TIMEOUT_MS);
    await server.stop();
    clearTimeout(timer);
  }
  await program.inboxWriter.drain();
  // Work that waits for the platform fails now. If a platform webhook asked for the work, the webhook stays in the
  // inbox.
  await Promise.all([platform, processor, reconciler, firstLoader, remover, teller].map((part) => part.stop()));
  // A request may still use the store after its connection was closed. Wait until its records are committed.
  await program.recordWriter.drain();
  // Attempts that still run have their own leases, so they do not need the membership.
  await program.membership.leave();
  await sent;
  await authenticator.writeUses({ all: true });
  if (address !== undefined) await store.sessions.forgetAddress(address).catch(() => undefined);
  await program.monitor?.stop();
  reserve.stop();
  await store.close();
}
