import { type Actor, auditEntry } from "../../domain/audit.ts";
import { SdsError } from "../../domain/error.ts";
import { planOf } from "../../domain/platform/app-plan.ts";
import { type ConnectionKind, missingScopes, type Tokens } from "../../domain/platform/connection.ts";
import { beingRemoved, type Shop } from "../../domain/shop.ts";
import { asObject } from "../../lib/json.ts";
import type { ConnectionStore } from "../../store/port/connections.ts";
import type { ShopStore } from "../../store/port/shops.ts";
import type { Store } from "../../store/port/store.ts";
import { apiUrls } from "../api/address.ts";
import { INSTALLATION, type Installation } from "../api/operations/app.ts";
import { postJson } from "../api/post-json.ts";
import type { TokenEndpoint } from "../api/token-endpoint.ts";
import { troubleOfStatus } from "../api/trouble.ts";
import { appSubscriptions, grantedScopes } from "./installation.ts";

/** Credentials that the operator gives to connect a shop. */
export type Credentials =
  | { kind: "client_credentials" }
  | { kind: "token"; token: string }
  /** The key is from `readAppKey`. */
  | { kind: "app_key"; appKey: string }
  | { kind: "refresh"; refreshToken: string };

export interface ConnectionResult {
  shop: Shop;
  scopes: string[];
  kind: ConnectionKind;
}

interface Dependencies {
  shops: Pick<ShopStore, "find" | "removing" | "add" | "set" | "followPlan">;
  connections: Pick<ConnectionStore, "connect">;
  audited: Store["audited"];
  endpoint: TokenEndpoint;
  fetch: typeof globalThis.fetch;
  /** A URL in which `{shop}` stands for the domain. */
  baseUrl: string;
  /**
   * The platform's time, never earlier than its last answer. It is stored as the time of the connection. Only later
   * changes queue events, and only a later uninstallation ends the connection.
   */
  now: () => number;
}

/**
 * Connects a shop, and adds it if it is new. Tries the credentials, checks the access scopes, and reads currency and
 * plan. A failure changes nothing, with one exception. New tokens from a refresh token are stored at once, because
 * their first use ends the old refresh token.
 * @throws PlatformError; SdsError `failed`, such as for missing scopes; `conflict` while the shop is being removed
 */
export async function connect(
  { shops, connections, audited, endpoint, fetch, baseUrl, now }: Dependencies,
  domain: string,
  credentials: Credentials,
  actor: Actor,
): Promise<ConnectionResult> {
  const { kind } = credentials;
  // Checked before the credentials are used, because a used refresh token expires soon.
  if ((await shops.removing()).some((shop) => shop.domain === domain)) throw beingRemoved(domain);
  const tokens = await requestTokens(endpoint, domain, credentials);
  const addShop = (currency: string) => shops.add({ domain, plan: "pro", currency }, now());
  let shop = await shops.find(domain);
  if (kind === "refresh") {
    shop ??= await addShop("USD");
    await connections.connect(shop.id, kind, tokens, [], now());
  }

  const installation = await requestInstallation(fetch, apiUrls(baseUrl, domain).graphql, domain, tokens.accessToken);
  const scopes = checkInstallation(installation, domain);
  const currency = installation.shop.currencyCode;
  shop ??= await addShop(currency);
  const entry = auditEntry(actor, now(), "shop.connected", { after: { kind, scopes: scopes.join(", ") } });
  await audited(shop.id, entry).connections.connect(shop.id, kind, tokens, scopes, entry.at);
  await shops.set(domain, { currency });
  const plan = planOf(appSubscriptions(installation));
  if (plan !== undefined) await shops.followPlan(shop.id, plan);
  return { shop: (await shops.find(domain)) ?? shop, scopes, kind };
}

function requestTokens(endpoint: TokenEndpoint, domain: string, credentials: Credentials): Promise<Tokens> {
  switch (credentials.kind) {
    case "token":
      return Promise.resolve({ accessToken: credentials.token, refreshToken: null, expiresAt: null });
    case "refresh":
      return endpoint.byRefreshToken(domain, credentials.refreshToken, "new refresh token");
    case "app_key":
      return endpoint.byAppKey(domain, credentials.appKey);
    case "client_credentials":
      return endpoint.byClientCredentials(domain);
  }
}

/** Requests the installation without the GraphQL client, because the client needs a stored connection. */
async function requestInstallation(
  fetch: typeof globalThis.fetch,
  url: string,
  domain: string,
  token: string,
): Promise<Installation> {
  const headers = { "Content-Type": "application/json", "X-Shopify-Access-Token": token };
  const response = await postJson(fetch, { url, body: JSON.stringify({ query: INSTALLATION.text }), headers });
  const { status, body } = response;
  if (status === 401) throw new SdsError("failed", `${domain} refuses this token (HTTP 401)`);
  const trouble = troubleOfStatus(response);
  if (trouble !== undefined) throw new SdsError("failed", `${domain}: ${trouble}`);
  const data = asObject(body?.["data"]);
  const errors = body?.["errors"];
  // An answer without errors has all fields that the query names, so this cast is safe.
  if (status === 200 && data !== undefined && errors === undefined) return data as unknown as Installation;
  const [error] = Array.isArray(errors) ? (errors as { message?: string }[]) : [];
  const detail = error?.message === undefined ? "" : `: ${error.message.slice(0, 200)}`;
  throw new SdsError("failed", `${domain} answered HTTP ${status}${detail}`);
}

/** @returns the scopes that were granted @throws SdsError `failed` for another shop or missing scopes */
function checkInstallation(installation: Installation, domain: string): string[] {
  const { shop } = installation;
  if (shop.myshopifyDomain !== domain) {
    throw new SdsError("failed", `these credentials are for ${shop.myshopifyDomain.slice(0, 253)}, not for ${domain}`);
  }
  const scopes = grantedScopes(installation);
  const missing = missingScopes(scopes);
  if (missing.length === 0) return scopes;
  const advice = "add what is missing to the app's scopes, and connect again";
  throw new SdsError("failed", `${domain} did not grant ${missing.join(", ")}: ${advice}`);
}
