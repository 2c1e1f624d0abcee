import { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Sleep } from "../lib/sleep.ts";
import type { Log } from "../log.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { Store } from "../store/store.ts";
import { AdminGraphqlClient, type GraphqlClient } from "./api/graphql-client.ts";
import { TokenEndpoint, TokenKeeper } from "./api/tokens.ts";
import { ContractMirror } from "./contracts/contract-mirror.ts";
import { ContractReader } from "./contracts/contract-reader.ts";
import { newestSecret } from "./inbox/verify.ts";
import { WebhookHandler } from "./inbox/webhook-handler.ts";
import { Synchronizer } from "./sync/synchronizer.ts";

/** At a stop: a rotated pair that isn't stored is lost for good. Milliseconds. */
const RENEWALS_MAY_TAKE = 5_000;
/** The inbox tries again by itself, and a try holds a place. */
const TRIES_OF_WEBHOOKS = 2;

export interface PlatformSettings {
  /** Base address with `{shop}` in the place of the domain. */
  platformUrl: string;
  platformClientId: string | null;
  platformSecretFile: string | null;
}

export interface Platform {
  endpoint: TokenEndpoint;
  api: AdminGraphqlClient;
  synchronizer: Synchronizer;
  handler: WebhookHandler;
  /** Whatever is asked or waits to be fails from now on; resolves once renewals of tokens that are under way are stored. */
  stop(): Promise<void>;
}

interface Dependencies {
  now: () => number;
  fetch: typeof globalThis.fetch;
  sleep: Sleep;
  log: Log;
}

/** Puts the platform's side together, the same for `serve` and for commands. */
export function openPlatform(settings: PlatformSettings, store: Store, recordWriter: RecordWriter, { now, fetch, sleep, log }: Dependencies): Platform {
  const { platformUrl: base, platformClientId: clientId, platformSecretFile } = settings;
  const endpoint = new TokenEndpoint(fetch, base, { clientId, clientSecret: () => newestSecret(platformSecretFile) }, now);
  const keeper = new TokenKeeper(store.connections, endpoint, now, sleep);
  const api = new AdminGraphqlClient({ fetch, base, sleep }, keeper, store.connections, log);
  const mutex = new KeyedMutex();
  const mirrorAsking = (client: GraphqlClient) => {
    const reader = new ContractReader(client, store.mirror, (shopId) => store.shops.settings(shopId), now);
    return new ContractMirror(client, reader, mutex, recordWriter, store.connections);
  };
  const { syncs, inbox } = store;
  const hasty = api.withTries(TRIES_OF_WEBHOOKS);
  return {
    endpoint,
    api,
    synchronizer: new Synchronizer({ client: api, contracts: mirrorAsking(api), syncs, inbox, now, log }),
    handler: new WebhookHandler({ store, client: hasty, contracts: mirrorAsking(hasty), recordWriter, log }),
    async stop() {
      api.stop();
      const settled = new AbortController();
      const renewals = keeper.settle().then(() => settled.abort());
      await Promise.race([renewals, sleep(RENEWALS_MAY_TAKE, settled.signal)]);
    },
  };
}
