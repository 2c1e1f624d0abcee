import { planOf } from "../../domain/app-plan.ts";
import { type ConnectionKind, missingScopes, type Tokens } from "../../domain/connection.ts";
import { SdsError } from "../../domain/error.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Store } from "../../store/store.ts";
import { addressOf } from "../api/address.ts";
import { INSTALLATION, type InstallationAnswer } from "../api/operations.ts";
import { postJson } from "../api/post-json.ts";
import type { TokenEndpoint } from "../api/tokens.ts";

/** What the operator gives to connect a shop. */
export type Credentials = { kind: "client_credentials" } | { kind: "token"; token: string } | { kind: "refresh"; refreshToken: string };

export interface ConnectionResult {
  shop: Shop;
  scopes: string[];
  kind: ConnectionKind;
}

/**
 * Connects a shop, which is added if it isn't there: tries the credentials, reads currency and plan, checks what was granted. Nothing is changed unless all of that went well, save
 * that the pair which a refresh token gave is kept at once: the refresh token is spent.
 * @throws PlatformError, or SdsError `failed` naming the scopes that are missing
 */
export async function connect(
  { store, endpoint, fetch, base }: { store: Store; endpoint: TokenEndpoint; fetch: typeof globalThis.fetch; base: string },
  domain: string,
  credentials: Credentials,
  now: number,
): Promise<ConnectionResult> {
  const tokens = await firstTokens(endpoint, domain, credentials);
  const isPair = credentials.kind === "refresh";
  const known = (await store.shops.find(domain)) ?? (isPair ? await store.shops.add({ domain, plan: "pro", currency: "USD" }, now) : undefined);
  if (isPair && known !== undefined) await store.connections.connect(known.id, "refresh", tokens, [], now);

  const { currentAppInstallation: installation, shop: platformShop } = await readInstallation(fetch, base, domain, tokens.accessToken);
  if (platformShop.myshopifyDomain !== domain)
    throw new SdsError("failed", `these credentials are for ${platformShop.myshopifyDomain.slice(0, 253)}, not for ${domain}`);
  const scopes = installation.accessScopes.map(({ handle }) => handle);
  const missing = missingScopes(scopes);
  if (missing.length > 0)
    throw new SdsError("failed", `${domain} did not grant ${missing.join(", ")}: add what is missing to the app's scopes, and connect again`);
  const currency = platformShop.currencyCode;
  const shop = known ?? (await store.shops.add({ domain, plan: "pro", currency }, now));
  await store.connections.connect(shop.id, credentials.kind, tokens, scopes, now);
  await store.shops.set(domain, { currency });
  const plan = planOf(installation.activeSubscriptions, installation.allSubscriptions.nodes.length > 0);
  if (plan !== undefined) await store.shops.followPlan(shop.id, plan);
  return { shop: (await store.shops.find(domain)) ?? shop, scopes, kind: credentials.kind };
}

function firstTokens(endpoint: TokenEndpoint, domain: string, credentials: Credentials): Promise<Tokens> {
  switch (credentials.kind) {
    case "token":
      return Promise.resolve({ accessToken: credentials.token, refreshToken: null, expiresAt: null });
    case "refresh":
      return endpoint.byRefreshToken(domain, credentials.refreshToken);
    case "client_credentials":
      return endpoint.byClientCredentials(domain);
  }
}

/** Before there is a connection, and so without the client that keeps its tokens. */
async function readInstallation(fetch: typeof globalThis.fetch, base: string, domain: string, token: string): Promise<InstallationAnswer> {
  const headers = { "Content-Type": "application/json", "X-Shopify-Access-Token": token };
  const { status, body } = await postJson(fetch, addressOf(base, domain).graphql, JSON.stringify({ query: INSTALLATION.text }), headers);
  if (status === 401) throw new SdsError("failed", `${domain} refuses this token (HTTP 401)`);
  const data = body?.["data"];
  if (status === 200 && typeof data === "object" && data !== null && body?.["errors"] === undefined) return data as InstallationAnswer;
  const [error] = Array.isArray(body?.["errors"]) ? (body["errors"] as { message?: string }[]) : [];
  throw new SdsError("failed", `${domain} answered HTTP ${status}${error?.message === undefined ? "" : `: ${error.message.slice(0, 200)}`}`);
}
