import { untilAborted } from "../../lib/waits.ts";
import { apiUrls, type ShopAddress } from "./address.ts";
import { type GraphqlData, type QueryCost, readCost, readGraphqlData } from "./graphql-response.ts";
import { PlatformError } from "./platform-error.ts";
import { postJson } from "./post-json.ts";
import type { Priority, QueryShape, RateLimits, ReleasePoints } from "./rate-limits.ts";
import type { AccessTokens } from "./tokens.ts";
import type { ConnectionWarnings } from "./warnings.ts";

interface GraphqlRequest {
  shape: QueryShape;
  body: string;
  priority: Priority;
  /** Checked before the request is sent; true cancels the request. */
  isOver: () => boolean;
}

interface Dependencies {
  fetch: typeof globalThis.fetch;
  /** A URL in which `{shop}` stands for the domain. */
  baseUrl: string;
  tokens: Pick<AccessTokens, "get">;
  limits: RateLimits;
  warnings: Pick<ConnectionWarnings, "noteVersion">;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
}

/** A request that takes longer than this counts as slow. */
const SLOW_MS = 5_000;

export function createRequestSender({ fetch, baseUrl, tokens, limits, warnings, clock }: Dependencies) {
  const slowShops = new Set<number>();

  async function sendOnce(shop: ShopAddress, request: GraphqlRequest, token: string, signal: AbortSignal) {
    const { shape, body, priority, isOver } = request;
    const release = await unlessAborted(limits.reserve(shop.id, shape, priority), signal);
    const sentAt = clock();
    let cost: QueryCost | undefined;
    try {
      if (isOver()) throw new PlatformError("unavailable", "the time limit of the request is over");
      const url = apiUrls(baseUrl, shop.domain).graphql;
      const headers = { "Content-Type": "application/json", "X-Shopify-Access-Token": token };
      const response = await postJson(fetch, { url, body, headers, signal });
      cost = readCost(response);
      await warnings.noteVersion(shop, "answers", response.apiVersion);
      return readGraphqlData(response);
    } catch (thrown) {
      // A refused query takes no points. If we noted its cost, the next, smaller query would wait too long.
      if (thrown instanceof PlatformError && thrown.isTooCostly) cost = undefined;
      throw thrown;
    } finally {
      if (clock() - sentAt > SLOW_MS) slowShops.add(shop.id);
      else slowShops.delete(shop.id);
      release(cost);
    }
  }

  return {
    /** Waits for points of the shop, then sends one request with an access token. @throws PlatformError */
    async send(shop: ShopAddress, request: GraphqlRequest, signal: AbortSignal): Promise<GraphqlData> {
      const token = await tokens.get(shop, { signal });
      try {
        return await sendOnce(shop, request, token, signal);
      } catch (thrown) {
        if (!(thrown instanceof PlatformError) || thrown.status !== 401) throw thrown;
        // The token may have expired early. So the request is repeated once with another token.
        return await sendOnce(shop, request, await tokens.get(shop, { refused: token, signal }), signal);
      }
    },
    /** Whether the shop's last request was slow. A failed request counts too. */
    isSlow: (shopId: number) => slowShops.has(shopId),
  };
}

/** Waits for points until the signal aborts. Points that are granted later are released. @throws the signal's reason */
async function unlessAborted(reservation: Promise<ReleasePoints>, signal: AbortSignal): Promise<ReleasePoints> {
  try {
    return await untilAborted(reservation, signal);
  } catch (thrown) {
    void reservation.then((release) => release(undefined));
    throw thrown;
  }
}
