import { type Actor, COMMAND_LINE } from "../domain/audit.ts";
import { SdsError } from "../domain/error.ts";
import { createKeyedMutex, type KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Log } from "../lib/log.ts";
import type { Sleep } from "../lib/waits.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { Store } from "../store/port/store.ts";
import type { ShopAddress } from "./api/address.ts";
import { createAppSecrets, newestSecret } from "./api/app-secrets.ts";
import { type BatchSizes, createBatchSizes } from "./api/batches.ts";
import { type AdminGraphqlClient, createGraphqlClient, type GraphqlClient } from "./api/graphql-client.ts";
import { PROTECTED_DATA } from "./api/operations/app.ts";
import { NEWEST_CONTRACT } from "./api/operations/contracts.ts";
import { createPlatformClock } from "./api/platform-clock.ts";
import { createTokenEndpoint } from "./api/token-endpoint.ts";
import { createAccessTokens } from "./api/tokens.ts";
import type { WebhookPriority } from "./api/topics.ts";
import { type ConnectionWarnings, createConnectionWarnings } from "./api/warnings.ts";
import { createRoundingReport, type RoundingReport } from "./contracts/money.ts";
import { createNodeLoader, createStagedNodeLoader } from "./contracts/node-loader.ts";
import { type ContractRefresher, createContractRefresher } from "./contracts/refresher.ts";
import { createWebhookHandler, type WebhookHandler } from "./inbox/webhook-handler.ts";
import { type ConnectionResult, type Credentials, connect } from "./install/connect.ts";
import { createIdTokenVerifier, type IdTokenVerifier } from "./install/id-token.ts";
import { createInstallationReader, type InstallationReader } from "./install/installation.ts";
import { createInstaller, type Installer } from "./install/installer.ts";
import { unlessWithoutApproval } from "./sync/loader.ts";
import { createSynchronizer, type Synchronizer } from "./sync/synchronizer.ts";

export interface PlatformSettings {
  /** A URL in which `{shop}` stands for the domain. */
  platformUrl: string;
  platformClientId: string | null;
  platformSecretFile: string | null;
}

/** The program's access to the platform. */
export interface Platform {
  client: AdminGraphqlClient;
  synchronizer: Synchronizer;
  installations: InstallationReader;
  handleWebhooks: WebhookHandler;
  warnings: ConnectionWarnings;
  /** The platform's time. */
  now: () => number;
  /** Connects a shop, and adds it if it is new. @throws PlatformError; SdsError `failed` */
  connect(domain: string, credentials: Credentials, actor?: Actor): Promise<ConnectionResult>;
  /** Checks ID tokens of the embedded page. */
  verifyIdToken: IdTokenVerifier;
  installer: Installer;
  /** Whether the shop has a contract that this app made. An app sees only its own contracts. @throws PlatformError */
  hasContracts(shop: ShopAddress): Promise<boolean>;
  /** Describes each level of protected customer data that the app is not allowed to read. @throws PlatformError */
  missingLevels(shop: ShopAddress): Promise<string[]>;
  /** Makes all requests fail from now on. Resolves when running token renewals are stored. */
  stop(): Promise<void>;
}

interface Dependencies {
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  fetch: typeof globalThis.fetch;
  sleep: Sleep;
  log: Log;
  /** Called after the platform asked to remove a shop, and the removal began. */
  onRemovalBegun?: () => void;
}

/** Maximum time that a stop waits for renewals. If new tokens are not stored, they must be requested again. */
const RENEWAL_TIMEOUT_MS = 5_000;
/** Maximum number of retries. More retries would keep a slot of the inbox occupied, and the inbox retries anyway. */
const WEBHOOK_MAX_RETRIES = 1;

/** Creates all clients and services that access the platform, for `serve` and for commands. */
export function openPlatform(
  settings: PlatformSettings,
  store: Store,
  recordWriter: RecordWriter,
  dependencies: Dependencies,
): Platform {
  const { shops, connections } = store;
  const { platformUrl: baseUrl } = settings;
  const { sleep, log } = dependencies;
  const api = openApi(settings, store, dependencies);
  const { client, tokens, endpoint, warnings, platformClock } = api;
  const { fetch, now } = platformClock;
  const installations = createInstallationReader({
    shops,
    connections,
    client: client.withOptions({ maxRetries: WEBHOOK_MAX_RETRIES }),
    warnings,
    log,
  });
  const services: PlatformServices = {
    ...dependencies,
    api,
    store,
    recordWriter,
    installations,
    mutex: createKeyedMutex(),
    sizes: createBatchSizes(),
    stopping: new AbortController(),
    reportRounding: createRoundingReport(log),
  };
  const installer = createInstaller({
    ...api,
    ...store,
    ...dependencies,
    installations,
    isShared: store.nodes !== null,
  });
  return {
    client,
    now,
    warnings,
    verifyIdToken: createIdTokenVerifier({
      clientId: settings.platformClientId,
      secrets: createAppSecrets(settings.platformSecretFile),
      now,
    }),
    installer,
    installations,
    synchronizer: openSynchronizer(services, baseUrl.startsWith("http://")),
    handleWebhooks: openWebhookHandler(services),
    connect: (domain, credentials, actor = COMMAND_LINE) =>
      connect({ ...store, endpoint, fetch, baseUrl, now: platformClock.sinceAnswer }, domain, credentials, actor),
    async hasContracts(shop) {
      return (await client.query(shop, NEWEST_CONTRACT, {})).subscriptionContracts.nodes.length > 0;
    },
    async missingLevels(shop) {
      for (const level of [1, 2] as const) await warnings.note(shop, `level ${level}`, null);
      await client.query(shop, PROTECTED_DATA, {}).catch(unlessWithoutApproval);
      const noted = await connections.warnings(shop.id);
      return noted.flatMap(({ kind, text }) => (kind.startsWith("level ") ? [text] : []));
    },
    async stop() {
      services.stopping.abort();
      client.stop();
      const drained = new AbortController();
      const renewals = Promise.all([tokens.drain(), installer.drain()]).then(() => drained.abort());
      await Promise.race([renewals, sleep(RENEWAL_TIMEOUT_MS, drained.signal)]);
    },
  };
}

type Api = ReturnType<typeof openApi>;

/** Creates the clients that send requests to the platform. */
function openApi(
  { platformUrl: baseUrl, platformClientId: clientId, platformSecretFile }: PlatformSettings,
  { connections }: Store,
  { now, clock, fetch: ownFetch, sleep, log }: Dependencies,
) {
  const platformClock = createPlatformClock(ownFetch, now);
  const { fetch } = platformClock;
  const clientSecret = () => newestSecret(platformSecretFile);
  const endpoint = createTokenEndpoint({ fetch, baseUrl, clientId, clientSecret, now, platformNow: platformClock.now });
  const tokens = createAccessTokens({ connections, endpoint, now, sleep });
  const warnings = createConnectionWarnings({ connections, now, log });
  const client = createGraphqlClient({ fetch, baseUrl, tokens, connections, warnings, sleep, now, clock, log });
  return { platformClock, endpoint, tokens, warnings, client };
}

/** Services that several parts of the adapter share. */
interface PlatformServices extends Dependencies {
  api: Api;
  store: Store;
  recordWriter: RecordWriter;
  installations: InstallationReader;
  mutex: KeyedMutex;
  sizes: BatchSizes;
  /** Aborted by `stop`. */
  stopping: AbortController;
  reportRounding: RoundingReport;
}

/** Creates a refresher that reads contracts with this client. */
function openContracts(
  { api, store, recordWriter, mutex, sizes, reportRounding, log }: PlatformServices,
  client: GraphqlClient,
  loader = createNodeLoader(client, sizes),
): ContractRefresher {
  const { platformClock } = api;
  const { shops, connections, mirror } = store;
  const settingsOf = (shopId: number) => shops.settings(shopId);
  const source = { client, sizes, loader, mirror, settingsOf, reportRounding, log, now: platformClock.now };
  return createContractRefresher({ source, mutex, recordWriter, connections, mirror, platformClock });
}

function openSynchronizer(services: PlatformServices, allowHttp: boolean): Synchronizer {
  const { api, store, installations, sizes, stopping, fetch, clock, log } = services;
  const { syncs, inbox, orderStages } = store;
  const loadClient = api.client.withOptions({ priority: "load" });
  const reconcileClient = api.client.withOptions({ priority: "reconcile" });
  const stagedLoader = createStagedNodeLoader(createNodeLoader(loadClient, sizes), orderStages);
  /** Waits, and throws after a stop. A wait for a bulk operation can last for days, so a stop must end it. */
  const sleep: Sleep = async (waitMs) => {
    await services.sleep(waitMs, stopping.signal);
    if (stopping.signal.aborted) throw new SdsError("failed", "the wait for the platform was stopped");
  };
  return createSynchronizer({
    forLoads: { client: loadClient, contracts: openContracts(services, loadClient, stagedLoader) },
    forReconciling: { client: reconcileClient, contracts: openContracts(services, reconcileClient) },
    // Files are on another host, whose clock is not the platform's. So they are read without the platform clock.
    fetch,
    allowHttp,
    orderStages,
    installations,
    syncs,
    inbox,
    sizes,
    now: api.platformClock.now,
    sleep,
    clock,
    log,
  });
}

function openWebhookHandler(services: PlatformServices): WebhookHandler {
  const { api, store, recordWriter, installations, onRemovalBegun = () => {}, now, log } = services;
  const { shops, connections } = store;

  function readerFor(priority: WebhookPriority) {
    const client = api.client.withOptions({ maxRetries: WEBHOOK_MAX_RETRIES, priority });
    return { client, contracts: openContracts(services, client) };
  }

  return createWebhookHandler({
    shops,
    connections,
    readers: { attempt: readerFor("attempt"), contract: readerFor("contract"), order: readerFor("order") },
    installations,
    recordWriter,
    inbox: store.inbox,
    onRemovalBegun,
    now,
    log,
  });
}
