import type { ConnectionKind, Tokens } from "../../domain/platform/connection.ts";
import { type Sleep, untilAborted } from "../../lib/waits.ts";
import type { ConnectionStore } from "../../store/port/connections.ts";
import type { ShopAddress } from "./address.ts";
import { PlatformError } from "./platform-error.ts";
import { TOKEN_TIMEOUT_MS, type TokenEndpoint } from "./token-endpoint.ts";
import { troubleOfStatus } from "./trouble.ts";

interface TokenOptions {
  /** A token that the platform has just refused. `get` then returns another token. */
  refused?: string;
  /** Ends the wait for a token. A running renewal goes on, because its tokens must be stored. */
  signal?: AbortSignal;
}

/** The access tokens of connected shops. They are renewed before they expire. */
export interface AccessTokens {
  /** Returns a valid access token. @throws PlatformError, or the reason of the signal */
  get(shop: ShopAddress, options?: TokenOptions): Promise<string>;
  /** Waits for renewals that are under way. */
  drain(): Promise<void>;
}

interface Dependencies {
  connections: Pick<ConnectionStore, "find" | "tokens" | "beginRenewal" | "renew" | "endRenewal">;
  endpoint: TokenEndpoint;
  now: () => number;
  sleep: Sleep;
}

/** A token is renewed this long before it expires. */
const RENEWAL_MARGIN_MS = 5 * 60_000;
/** After this time, another process may repeat a renewal. Requesting and storing the tokens takes less time. */
const RENEWAL_TIMEOUT_MS = TOKEN_TIMEOUT_MS + 10_000;
/** Minimum lifetime of a refresh token after its access token expires. The platform says 90 days in total. */
const LEAST_REFRESH_LIFE_MS = 89 * 86_400_000;
/** Interval between checks whether another process has renewed the tokens. */
const RENEWAL_POLL_MS = 200;

export function createAccessTokens(dependencies: Dependencies): AccessTokens {
  const { connections, now } = dependencies;
  const renewer = createRenewer(dependencies);
  const renewals = new Map<number, Promise<Tokens>>();

  /** Renews the shop's tokens. All callers that wait for tokens of the same shop share one renewal. */
  function renew(shop: ShopAddress, kind: ConnectionKind, old: Tokens): Promise<Tokens> {
    const underWay = renewals.get(shop.id);
    if (underWay !== undefined) return underWay;
    const renewal = renewer.renew(shop, kind, old).finally(() => renewals.delete(shop.id));
    renewals.set(shop.id, renewal);
    return renewal;
  }

  return {
    async get(shop, { refused, signal } = {}) {
      await renewer.saveUnsaved(shop.id);
      const connection = await connections.find(shop.id);
      const tokens = await connections.tokens(shop.id);
      if (connection === undefined || tokens === undefined) throw notConnected();
      const { accessToken, expiresAt } = tokens;
      const isFresh = expiresAt === null || expiresAt - RENEWAL_MARGIN_MS > now();
      if (accessToken !== refused && isFresh) return accessToken;
      if (connection.kind === "token") {
        throw new PlatformError("unauthorized", troubleOfStatus({ status: 401 }) ?? "", {
          status: 401,
          needsMerchant: true,
        });
      }
      const renewal = renew(shop, connection.kind, tokens);
      return (await (signal === undefined ? renewal : untilAborted(renewal, signal))).accessToken;
    },

    async drain() {
      await Promise.allSettled(renewals.values());
    },
  };
}

function createRenewer({ connections, endpoint, now, sleep }: Dependencies) {
  /** Identifies this process in the database while it renews tokens. */
  const processId = crypto.randomUUID();
  /** For each shop: new tokens that could not be stored yet, and the tokens that they replace. */
  const unsaved = new Map<number, { old: Tokens; tokens: Tokens }>();

  async function saveUnsaved(shopId: number): Promise<void> {
    const pair = unsaved.get(shopId);
    if (pair === undefined) return;
    // If the stored tokens are newer, they are kept. Another process may have renewed them, or the operator may have
    // connected the shop again. `renew` checks this again.
    const current = await connections.tokens(shopId);
    if (current?.accessToken === pair.old.accessToken) await connections.renew(shopId, pair.tokens, pair.old);
    unsaved.delete(shopId);
  }

  async function requestNext(shop: ShopAddress, kind: ConnectionKind, old: Tokens): Promise<Tokens> {
    const tokens = await requestByKind(shop.domain, kind, old);
    unsaved.set(shop.id, { old, tokens });
    await saveUnsaved(shop.id);
    return tokens;
  }

  function requestByKind(domain: string, kind: ConnectionKind, old: Tokens): Promise<Tokens> {
    const { refreshToken, appKey } = old;
    const credential = isUnended(old, now()) ? "unended refresh token" : "refresh token";
    if (kind === "refresh" && refreshToken !== null) return endpoint.byRefreshToken(domain, refreshToken, credential);
    if (kind === "app_key" && appKey !== undefined) return endpoint.byAppKey(domain, appKey);
    return endpoint.byClientCredentials(domain);
  }

  /** Renews tokens, or waits until another process has renewed them. */
  async function renew(shop: ShopAddress, kind: ConnectionKind, old: Tokens): Promise<Tokens> {
    for (;;) {
      const isOurs = await connections.beginRenewal(shop.id, processId, now(), now() + RENEWAL_TIMEOUT_MS);
      try {
        const current = await connections.tokens(shop.id);
        if (current === undefined) throw notConnected();
        // Another process has renewed the tokens.
        if (current.accessToken !== old.accessToken) return current;
        if (isOurs) return await requestNext(shop, kind, old);
      } finally {
        if (isOurs) await connections.endRenewal(shop.id, processId);
      }
      await sleep(RENEWAL_POLL_MS);
    }
  }

  return { saveUnsaved, renew };
}

/** Whether the refresh token cannot have expired yet. A refresh token lives much longer than its access token. */
function isUnended({ expiresAt }: Tokens, now: number): boolean {
  return expiresAt !== null && now < expiresAt + LEAST_REFRESH_LIFE_MS;
}

function notConnected(): PlatformError {
  return new PlatformError("unauthorized", "the shop is not connected to the platform");
}
