import type { Log } from "../log.ts";
import type { Door } from "../mirror/door.ts";
import type { Store } from "../store/store.ts";
import { AdminApi, type Asker } from "./admin-api.ts";
import { ContractMirror } from "./contract-mirror.ts";
import { ContractReader } from "./contract-reader.ts";
import { Lanes } from "./lanes.ts";
import type { Sleep } from "./sleep.ts";
import { Synchronizer } from "./synchronizer.ts";
import { TokenEndpoint, TokenKeeper } from "./tokens.ts";
import { newestSecret } from "./verify.ts";
import { WebhookHandler } from "./webhook-handler.ts";

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
  api: AdminApi;
  synchronizer: Synchronizer;
  handler: WebhookHandler;
  /** Whatever is asked or waits to be fails from now on; resolves once renewals of tokens that are under way are stored. */
  stop(): Promise<void>;
}

interface Surroundings {
  now: () => number;
  fetch: typeof globalThis.fetch;
  sleep: Sleep;
  log: Log;
}

/** Puts the platform's side together, the same for `serve` and for commands. */
export function openPlatform(settings: PlatformSettings, store: Store, door: Door, { now, fetch, sleep, log }: Surroundings): Platform {
  const { platformUrl: base, platformClientId: clientId, platformSecretFile } = settings;
  const endpoint = new TokenEndpoint(fetch, base, { clientId, clientSecret: () => newestSecret(platformSecretFile) }, now);
  const keeper = new TokenKeeper(store.connections, endpoint, now, sleep);
  const api = new AdminApi({ fetch, base, sleep }, keeper, store.connections, log);
  const lanes = new Lanes();
  const mirrorAsking = (asker: Asker) => {
    const reader = new ContractReader(asker, store.mirror, (shopId) => store.shops.settings(shopId), now);
    return new ContractMirror(asker, reader, lanes, door, store.connections);
  };
  const { syncs, inbox } = store;
  const hasty = api.withTries(TRIES_OF_WEBHOOKS);
  return {
    endpoint,
    api,
    synchronizer: new Synchronizer({ asker: api, contracts: mirrorAsking(api), syncs, inbox, now, log }),
    handler: new WebhookHandler({ store, asker: hasty, contracts: mirrorAsking(hasty), door, log }),
    async stop() {
      api.stop();
      const settled = new AbortController();
      const renewals = keeper.settle().then(() => settled.abort());
      await Promise.race([renewals, sleep(RENEWALS_MAY_TAKE, settled.signal)]);
    },
  };
}
