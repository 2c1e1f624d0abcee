import { SdsError } from "../../domain/error.ts";
import { missingScopes } from "../../domain/platform/connection.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import { type Sleep, untilAborted } from "../../lib/waits.ts";
import type { Connection, ConnectionStore } from "../../store/port/connections.ts";
import type { ShopStore } from "../../store/port/shops.ts";
import { failureFields } from "../../store/port/store-error.ts";
import type { PlatformClock } from "../api/platform-clock.ts";
import { PlatformError } from "../api/platform-error.ts";
import { TOKEN_TIMEOUT_MS, type TokenEndpoint } from "../api/token-endpoint.ts";
import { needsNewTokens } from "../api/trouble.ts";
import type { IdToken } from "./id-token.ts";
import type { InstallationReader } from "./installation.ts";

/** The result of opening the embedded page with a valid ID token. */
export type Opening =
  | { shop: Shop }
  /** The exchange takes long, and is still under way. */
  | { waits: "connecting" }
  /** The data of an earlier installation is being deleted. */
  | { waits: "removal" }
  /** The platform refuses the ID token. A new ID token may help. */
  | { waits: "token" }
  /** The platform gave no tokens, for a reason that the log names. */
  | { waits: "platform" };

/** Connects shops whose staff open the embedded page, and gets new tokens if necessary. */
export interface Installer {
  /**
   * Finds the shop of an ID token. If the shop is not connected, or needs new tokens, exchanges the ID token for
   * tokens. All processes together make one exchange for a shop at a time. Waits a few seconds at most.
   * @param text the ID token itself
   */
  open(idToken: IdToken, text: string): Promise<Opening>;
  /** Waits for exchanges and checks under way. */
  drain(): Promise<void>;
}

interface Dependencies {
  shops: Pick<ShopStore, "find" | "byId" | "rename" | "removing">;
  connections: Pick<
    ConnectionStore,
    "find" | "shopMovedTo" | "beginExchange" | "extendExchange" | "install" | "endExchange" | "endAllExchanges"
  >;
  endpoint: Pick<TokenEndpoint, "byIdToken">;
  installations: Pick<InstallationReader, "read">;
  platformClock: Pick<PlatformClock, "mark" | "now">;
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  sleep: Sleep;
  log: Log;
  /** Whether other nodes share the database. */
  isShared: boolean;
}

/** After this time, a view says that the shop is being connected. Until then, the merchant sees an empty frame. */
const VIEW_WAIT_MS = 5_000;
/** Maximum wait for the exchange of another process. Requesting and storing tokens takes less time. */
const EXCHANGE_TIMEOUT_MS = TOKEN_TIMEOUT_MS + 5_000;
/** The lease is shorter than VIEW_WAIT_MS, so a waiting view can repeat the exchange of a killed process. */
const LEASE_MS = 4_000;
const EXTEND_LEASE_EVERY_MS = 1_000;
/** Interval between checks whether another process has connected the shop. */
const POLL_MS = 200;
/** Minimum time between two checks that page views cause. Also the wait after a failed exchange of a connected shop. */
const CHECK_EVERY_MS = 60_000;
/** Minimum time between two exchanges because of missing scopes. A shop may never grant these scopes. */
const SCOPES_EVERY_MS = 10 * 60_000;

export function createInstaller(dependencies: Dependencies): Installer {
  const { connections, clock, log } = dependencies;
  const exchange = createExchange(dependencies);
  const checks = createChecks(dependencies, exchange);
  /** For each shop: the time of `clock` when an exchange failed. */
  const failedAt = createTimes(clock);

  async function openWithExchange(idToken: IdToken, text: string): Promise<Opening> {
    const timeout = AbortSignal.timeout(VIEW_WAIT_MS);
    const running = exchange.run(idToken, text);
    return untilAborted(running, timeout).catch((thrown): Opening => {
      if (!timeout.aborted) throw thrown;
      running.catch((late) => log.error("cannot connect a shop", { shop: idToken.shop, ...failureFields(late) }));
      return { waits: "connecting" };
    });
  }

  return {
    async open(idToken, text) {
      const shop = await findShop(dependencies, idToken.shop);
      const connection = shop && (await connections.find(shop.id));
      if (shop === undefined || connection === undefined) return openWithExchange(idToken, text);
      if (!exchange.isNeeded(connection)) {
        checks.begin(shop, idToken, text);
        return { shop };
      }
      if (failedAt.isRecent(shop.id)) return { shop };
      const opening = await openWithExchange(idToken, text);
      if ("shop" in opening || opening.waits === "token") return opening;
      // The page opens anyway. It shows what is wrong with the connection, and everything else on it works.
      failedAt.note(shop.id);
      return { shop };
    },

    async drain() {
      await Promise.all([exchange.drain(), checks.drain()]);
    },
  };
}

/**
 * Finds a shop by the domain of an ID token. Renames a connected shop if the platform has already reported this domain
 * as the shop's new one. The ID token proves the new domain.
 */
async function findShop(
  { shops, connections, log }: Pick<Dependencies, "shops" | "connections" | "log">,
  domain: string,
): Promise<Shop | undefined> {
  const known = await shops.find(domain);
  if (known !== undefined) return known;
  const movedId = await connections.shopMovedTo(domain);
  const moved = movedId === undefined ? undefined : await shops.byId(movedId);
  if (moved === undefined) return undefined;
  const renamed = await shops.rename(moved.domain, domain);
  log.info("the shop has another domain at the platform, so it was renamed", { shop: domain, before: moved.domain });
  return renamed;
}

type Exchange = ReturnType<typeof createExchange>;

function createExchange(dependencies: Dependencies) {
  const { shops, connections, platformClock, now, clock, sleep, log, isShared } = dependencies;
  /** Identifies this process in the database while it exchanges an ID token. */
  const processId = crypto.randomUUID();
  const underWay = new Map<string, Promise<Opening>>();
  const isNeeded = (connection: Connection | undefined) => needsTokens(connection, platformClock.now());
  let othersEnded: Promise<void> | undefined;

  /** Ends all reservations that killed processes left, unless other nodes may hold reservations in the database. */
  async function endOthers(): Promise<void> {
    if (isShared) return;
    // This happens only once, because a later call would end this process's own reservations.
    othersEnded ??= connections.endAllExchanges().catch((thrown: unknown) => {
      othersEnded = undefined;
      throw thrown;
    });
    await othersEnded;
  }

  /** Tries to connect the shop once. @returns undefined while another process exchanges an ID token of the shop */
  async function tryOnce(idToken: IdToken, text: string): Promise<Opening | undefined> {
    const { shop: domain } = idToken;
    const isOurs = await connections.beginExchange(domain, processId, now(), now() + LEASE_MS);
    try {
      // Another process may have connected the shop.
      const known = await findShop(dependencies, domain);
      if (known !== undefined && !isNeeded(await connections.find(known.id))) return { shop: known };
      return isOurs ? await installWithLease(dependencies, processId, idToken, text) : undefined;
    } finally {
      if (isOurs) await connections.endExchange(domain, processId);
    }
  }

  async function exchange(idToken: IdToken, text: string): Promise<Opening> {
    const { shop: domain } = idToken;
    try {
      // While the shop is being removed, nothing can be stored. So an exchange would be useless.
      if ((await shops.removing()).some((shop) => shop.domain === domain)) return { waits: "removal" };
      await endOthers();
      for (const endsAt = clock() + EXCHANGE_TIMEOUT_MS; clock() < endsAt; await sleep(POLL_MS)) {
        const opening = await tryOnce(idToken, text);
        if (opening !== undefined) return opening;
      }
      log.warn("a shop could not be connected: another process takes too long", { shop: domain });
      return { waits: "platform" };
    } catch (thrown) {
      if (thrown instanceof SdsError && thrown.code === "conflict") return { waits: "removal" };
      if (!(thrown instanceof PlatformError)) throw thrown;
      const fields = { shop: domain, ...failureFields(thrown) };
      log.warn("a shop could not be connected, because the platform gave no tokens", fields);
      return { waits: "platform" };
    }
  }

  return {
    isNeeded,
    /** Connects a shop. All views that wait for the same shop share one exchange. */
    run(idToken: IdToken, text: string): Promise<Opening> {
      const { shop: domain } = idToken;
      const running = underWay.get(domain) ?? exchange(idToken, text).finally(() => underWay.delete(domain));
      underWay.set(domain, running);
      return running;
    },
    async drain() {
      await Promise.allSettled(underWay.values());
    },
  };
}

/** Whether new tokens are needed to connect, to end trouble, or to get scopes. @param now the platform's time */
function needsTokens(connection: Connection | undefined, now: number): boolean {
  if (connection === undefined) return true;
  const { kind, trouble, scopes, connectedAt } = connection;
  if (trouble !== null) return needsNewTokens(trouble);
  const lacksScopes = kind === "refresh" && missingScopes(scopes).length > 0;
  return lacksScopes && Math.abs(now - connectedAt) >= SCOPES_EVERY_MS;
}

/** Connects the shop with `install`, and meanwhile extends the reservation's lease. @throws PlatformError */
async function installWithLease(dependencies: Dependencies, processId: string, idToken: IdToken, text: string) {
  const { connections, now, sleep } = dependencies;
  const installing = install(dependencies, processId, idToken, text);
  const ended = Promise.allSettled([installing]).then(() => true);
  while (!(await Promise.race([ended, sleep(EXTEND_LEASE_EVERY_MS).then(() => false)])))
    // If this fails, the lease may expire. Then the tokens are dropped, and the next view exchanges again.
    await connections.extendExchange(idToken.shop, processId, now() + LEASE_MS).catch(() => undefined);
  return installing;
}

/** Exchanges an ID token, stores the shop with its tokens, and reads what the shop granted. @throws PlatformError */
async function install(
  { shops, connections, endpoint, installations, platformClock, log }: Dependencies,
  processId: string,
  { shop: domain, issuedAt }: IdToken,
  text: string,
): Promise<Opening> {
  const beganAt = platformClock.mark();
  const granted = await endpoint.byIdToken(domain, text);
  if ("refused" in granted) {
    log.info("the platform refused to exchange an ID token", { shop: domain, error: granted.refused });
    return { waits: "token" };
  }
  // The app was installed when the platform made the ID token. So an earlier `app/uninstalled` is outdated, even if our
  // clock is behind.
  const connectedAt = Math.max(beganAt(), issuedAt);
  const shop = await connections.install(processId, {
    shop: { domain, plan: "pro", currency: "USD" },
    ...granted,
    connectedAt,
  });
  if (shop === undefined) {
    log.warn("the exchange of an ID token took too long, so its tokens were dropped", { shop: domain });
    return { waits: "connecting" };
  }
  log.info("a shop was connected by its staff", { shop: domain, missing: missingScopes(granted.scopes).join() });
  try {
    await installations.read(shop);
  } catch (thrown) {
    log.warn("cannot read the scopes, plan and currency of a shop yet", { shop: domain, ...failureFields(thrown) });
  }
  return { shop: (await shops.byId(shop.id)) ?? shop };
}

/**
 * Checks a shop's connection when its page is opened, at most once a minute: reads plan and scopes. If the platform
 * refuses the tokens, the ID token of the view is exchanged at once.
 */
function createChecks({ connections, installations, clock, log }: Dependencies, exchange: Exchange) {
  const checkedAt = createTimes(clock);
  const underWay = new Set<Promise<void>>();

  async function check(shop: Shop, idToken: IdToken, text: string): Promise<void> {
    try {
      await installations.read(shop);
    } catch (thrown) {
      const fields = { shop: shop.domain, ...failureFields(thrown) };
      log.info("cannot read the scopes and the plan of a shop whose page was opened", fields);
      if (exchange.isNeeded(await connections.find(shop.id))) await exchange.run(idToken, text);
    }
  }

  return {
    begin(shop: Shop, idToken: IdToken, text: string): void {
      if (checkedAt.isRecent(shop.id)) return;
      checkedAt.note(shop.id);
      const running = check(shop, idToken, text)
        .catch((thrown) => log.error("cannot check a connection", { shop: shop.domain, ...failureFields(thrown) }))
        .finally(() => underWay.delete(running));
      underWay.add(running);
    },
    async drain() {
      await Promise.allSettled(underWay);
    },
  };
}

/** Notes a time for each shop, and forgets it after CHECK_EVERY_MS. */
function createTimes(clock: () => number) {
  const times = new Map<number, number>();
  const isRecent = (shopId: number) => clock() - (times.get(shopId) ?? Number.NEGATIVE_INFINITY) < CHECK_EVERY_MS;
  return {
    isRecent,
    note(shopId: number): void {
      for (const known of times.keys()) if (!isRecent(known)) times.delete(known);
      times.set(shopId, clock());
    },
  };
}
