import { createLog } from "../../src/lib/log.ts";
import { createGraphqlClient } from "../../src/shopify/api/graphql-client.ts";
import { createTokenEndpoint } from "../../src/shopify/api/token-endpoint.ts";
import { createAccessTokens } from "../../src/shopify/api/tokens.ts";
import { createConnectionWarnings } from "../../src/shopify/api/warnings.ts";
import { type ConnectedShop, connected, SECRET } from "./connected.ts";

/**
 * Makes the program's GraphQL client and its parts. They do not really wait: each wait is recorded, and moves the
 * clocks. With `inRealTime`, the client really waits.
 */
export function recordedClient({ test, platform, shop }: ConnectedShop, { inRealTime = false } = {}) {
  const waits: number[] = [];
  const logged: string[] = [];
  const clock = { ms: 0 };
  const hooks = { onSleep: async (_nth: number): Promise<unknown> => undefined };
  const { connections } = test.app.store;
  const { now } = test.clock;

  async function sleep(waitMs: number): Promise<void> {
    waits.push(waitMs);
    clock.ms += waitMs;
    test.clock.ms += waitMs;
    await hooks.onSleep(waits.length);
  }

  const endpoint = createTokenEndpoint({
    fetch,
    baseUrl: platform.url,
    clientId: "client",
    clientSecret: () => SECRET,
    now,
  });
  const tokens = createAccessTokens({ connections, endpoint, now, sleep });
  const log = createLog("debug", { write: (text) => logged.push(text) }, now);
  const client = createGraphqlClient({
    fetch,
    baseUrl: platform.url,
    tokens,
    connections,
    warnings: createConnectionWarnings({ connections, now, log }),
    sleep: inRealTime ? Bun.sleep : sleep,
    now,
    clock: inRealTime ? () => performance.now() : () => clock.ms,
    log,
  });
  return { client, tokens, endpoint, connections, shop: shop.shop, waits, logged, clock, hooks, sleep };
}

/** A connected shop, and the results of `recordedClient`. */
export async function recorded(options: { inRealTime?: boolean } = {}, platform: Parameters<typeof connected>[1] = {}) {
  const all = await connected({}, platform);
  return { all, ...recordedClient(all, options) };
}
