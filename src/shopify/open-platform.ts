import { createKeyedMutex } from "../lib/keyed-mutex.ts";
import type { Sleep } from "../lib/sleep.ts";
import type { Log } from "../log.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { Store } from "../store/store.ts";
import type { ShopAddress } from "./api/address.ts";
import { type AdminGraphqlClient, createGraphqlClient, type GraphqlClient } from "./api/graphql-client.ts";
import { NEWEST_CONTRACT } from "./api/operations/contracts.ts";
import { createPlatformClock } from "./api/platform-clock.ts";
import { createTokenEndpoint } from "./api/token-endpoint.ts";
import { createAccessTokens } from "./api/tokens.ts";
import { createStagedNodeLoader } from "./bulk/staged-orders.ts";
import { createContractMirror } from "./contracts/mirror.ts";
import { createNodeLoader } from "./contracts/node-loader.ts";
import { createContractPageReader } from "./contracts/page-reader.ts";
import { createContractReader } from "./contracts/reader.ts";
import { createRoundingReport } from "./contracts/rounding-report.ts";
import type { WebhookPriority } from "./inbox/topics.ts";
import { newestSecret } from "./inbox/verify.ts";
import { createWebhookHandler, type WebhookHandler } from "./inbox/webhook-handler.ts";
import { type ConnectionResult, type Credentials, connect } from "./install/connect.ts";
import { createInstallationReader } from "./install/installation.ts";
import { createSynchronizer, type Synchronizer } from "./sync/synchronizer.ts";

export interface PlatformSettings {
  /** With `{shop}` in the place of the domain. */
  platformUrl: string;
  platformClientId: string | null;
  platformSecretFile: string | null;
}

/** Everything that the program does with the platform. */
export interface Platform {
  client: AdminGraphqlClient;
  synchronizer: Synchronizer;
  handler: WebhookHandler;
  /** The platform's time. */
  now: () => number;
  /** Connects a shop, and adds it if it is new. @throws PlatformError; SdsError `failed` */
  connect(domain: string, credentials: Credentials): Promise<ConnectionResult>;
  /**
   * Whether the platform shows any subscription contract to the app. It shows an app only those that it made.
   * @throws PlatformError
   */
  hasContracts(shop: ShopAddress): Promise<boolean>;
  /** All requests fail from now on. Resolves when renewals of tokens that are under way are stored. */
  stop(): Promise<void>;
}

interface Dependencies {
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  fetch: typeof globalThis.fetch;
  sleep: Sleep;
  log: Log;
  /** Called when the platform asked for the removal of a shop, and the removal began. */
  onRemovalBegun?: () => void;
}

/** How long a stop waits for renewals. A new pair of tokens that is not stored is lost for good. */
const RENEWAL_TIMEOUT_MS = 5_000;
/** The inbox retries on its own, and a request in progress uses one of its slots. */
const WEBHOOK_MAX_RETRIES = 1;

/** Puts the parts of the adapter together, for `serve` and for commands. */
export function openPlatform(
  { platformUrl: baseUrl, platformClientId: clientId, platformSecretFile }: PlatformSettings,
  store: Store,
  recordWriter: RecordWriter,
  { now, clock, fetch, sleep, log, onRemovalBegun = () => {} }: Dependencies,
): Platform {
  const { shops, connections, syncs, orderStages, inbox, mirror } = store;
  const clientSecret = () => newestSecret(platformSecretFile);
  const platformClock = createPlatformClock(fetch, now);
  const { fetch: platformFetch, now: platformNow } = platformClock;
  const endpoint = createTokenEndpoint({ fetch: platformFetch, baseUrl, clientId, clientSecret, now });
  const tokens = createAccessTokens({ connections, endpoint, now, sleep });
  const client = createGraphqlClient({ fetch: platformFetch, baseUrl, tokens, connections, sleep, clock, log });
  const mutex = createKeyedMutex();
  const rounding = createRoundingReport(log);

  function contractsThrough(graphql: GraphqlClient, loader = createNodeLoader(graphql)) {
    const settingsOf = (shopId: number) => shops.settings(shopId);
    const reader = createContractReader({ client: graphql, loader, mirror, settingsOf, rounding, now: platformNow });
    const pageReader = createContractPageReader({ client: graphql, reader, settingsOf, now: platformNow });
    return createContractMirror({
      client: graphql,
      loader,
      reader,
      pageReader,
      mutex,
      recordWriter,
      connections,
      mirror,
      platformClock,
    });
  }

  function readerFor(priority: WebhookPriority) {
    const graphql = client.withOptions({ maxRetries: WEBHOOK_MAX_RETRIES, priority });
    return { client: graphql, contracts: contractsThrough(graphql) };
  }

  const loadClient = client.withOptions({ priority: "load" });
  const reconcileClient = client.withOptions({ priority: "reconcile" });
  const webhookClient = client.withOptions({ maxRetries: WEBHOOK_MAX_RETRIES });
  const installations = createInstallationReader({ shops, connections, client: webhookClient, log });
  return {
    client,
    now: platformNow,
    synchronizer: createSynchronizer({
      loadClient,
      reconcileClient,
      contracts: contractsThrough(reconcileClient),
      loadedContracts: contractsThrough(loadClient, createStagedNodeLoader(createNodeLoader(loadClient), orderStages)),
      files: { fetch, sleep, allowHttp: baseUrl.startsWith("http://") },
      orderStages,
      installations,
      syncs,
      inbox,
      now: platformNow,
      clock,
      log,
    }),
    handler: createWebhookHandler({
      shops,
      connections,
      readers: { attempt: readerFor("attempt"), contract: readerFor("contract"), order: readerFor("order") },
      installations,
      recordWriter,
      onRemovalBegun,
      now,
      log,
    }),
    connect: (domain, credentials) =>
      connect({ shops, connections, endpoint, fetch: platformFetch, baseUrl, now: platformNow }, domain, credentials),
    async hasContracts(shop) {
      return (await client.query(shop, NEWEST_CONTRACT, {})).subscriptionContracts.nodes.length > 0;
    },
    async stop() {
      client.stop();
      const drained = new AbortController();
      const renewals = tokens.drain().then(() => drained.abort());
      await Promise.race([renewals, sleep(RENEWAL_TIMEOUT_MS, drained.signal)]);
    },
  };
}
