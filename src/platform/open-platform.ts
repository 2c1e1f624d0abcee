import type { Log } from "../log.ts";
import type { Door } from "../mirror/door.ts";
import type { Store } from "../store/store.ts";
import { AdminApi, type Sleep } from "./admin-api.ts";
import { ContractReader } from "./contract-reader.ts";
import { Lanes } from "./lanes.ts";
import { Synchronizer } from "./synchronizer.ts";
import { TokenEndpoint, TokenKeeper } from "./tokens.ts";
import { newestSecret } from "./verify.ts";

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
  const reader = new ContractReader(api, store.mirror, (shopId) => store.shops.settings(shopId), now);
  return { endpoint, api, synchronizer: new Synchronizer({ api, reader, lanes: new Lanes(), door, syncs: store.syncs, now, log }) };
}
