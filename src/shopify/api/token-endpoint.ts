import { messageOf } from "../../domain/error.ts";
import type { Tokens } from "../../domain/platform/connection.ts";
import { apiUrls } from "./address.ts";
import { type AssertionForm, assertionForms, signAssertion } from "./app-key.ts";
import { PlatformError } from "./platform-error.ts";
import { type JsonResponse, postJson } from "./post-json.ts";
import { type Credential, type RefreshCredential, troubleOfTokenRequest } from "./trouble.ts";

/** Requests tokens from the platform. */
export interface TokenEndpoint {
  /** Requests a token with the app's own credentials. @throws PlatformError */
  byClientCredentials(domain: string): Promise<Tokens>;
  /**
   * Requests a token with the app's own private key. The token expires after an hour, and has no refresh token.
   * @param appKey from `readAppKey`
   * @returns the tokens, which include `appKey`
   * @throws PlatformError
   */
  byAppKey(domain: string, appKey: string): Promise<Tokens>;
  /**
   * Requests the next pair of tokens. This request can be repeated: the platform accepts the old refresh token until
   * the new refresh token is used.
   * @param credential describes the refresh token in the message of an error
   * @throws PlatformError
   */
  byRefreshToken(domain: string, refreshToken: string, credential?: RefreshCredential): Promise<Tokens>;
  /**
   * Exchanges an ID token of the shop's staff for a pair of tokens.
   * @returns the tokens, or the platform's error if the ID token is refused
   * @throws PlatformError
   */
  byIdToken(domain: string, idToken: string): Promise<Granted | { refused: string }>;
}

/** Tokens of a shop that has the app installed. */
interface Granted {
  kind: "refresh" | "token";
  tokens: Tokens;
  scopes: string[];
}

interface Dependencies {
  fetch: typeof globalThis.fetch;
  /** A URL in which `{shop}` stands for the domain. */
  baseUrl: string;
  clientId: string | null;
  /** Returns the newest secret of the app. @throws if the app has no secret */
  clientSecret: () => string;
  now: () => number;
  /** The platform's time. Default: our time. */
  platformNow?: () => number;
}

/**
 * The time limit of a token request. It is short, because other processes wait for the tokens. A request that timed out
 * may be repeated: see `byRefreshToken`.
 */
export const TOKEN_TIMEOUT_MS = 10_000;

/** The parameters of a token request (RFC 6749 and RFC 7523, 2.2). */
interface Grant {
  client_id: string;
  grant_type: "client_credentials" | "refresh_token" | "urn:ietf:params:oauth:grant-type:token-exchange";
  client_secret?: string;
  refresh_token?: string;
  client_assertion_type?: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
  client_assertion?: string;
  subject_token?: string;
  subject_token_type?: "urn:ietf:params:oauth:token-type:id_token";
  requested_token_type?: "urn:shopify:params:oauth:token-type:offline-access-token";
  expiring?: "1";
}

/** The parameters of every exchange of an ID token. Without `expiring`, the platform gives a permanent token. */
const EXCHANGE = {
  grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
  subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
  requested_token_type: "urn:shopify:params:oauth:token-type:offline-access-token",
  expiring: "1",
} as const;

/** Errors with which the platform refuses an ID token, for example because the shop does not have the app. */
const REFUSED_ID_TOKEN = ["invalid_subject_token", "app_not_installed"];

/** Maximum lifetime of a token, in seconds. */
const MAX_LIFE_S = 366 * 86_400;
/** Assumed lifetime of a token in seconds, if the answer names no lifetime. Such a token may expire, too. */
const DEFAULT_LIFE_S = 3_600;

export function createTokenEndpoint(dependencies: Dependencies): TokenEndpoint {
  const { fetch, baseUrl, clientId, clientSecret, now, platformNow = now } = dependencies;
  /** The index of the assertion form that the platform accepted last. */
  let acceptedForm = 0;

  function appId(): string {
    if (clientId === null)
      throw new PlatformError(
        "unauthorized",
        "SDS_PLATFORM_CLIENT_ID is not set: it must be the client id of the app that bills",
      );
    return clientId;
  }

  const app = () => ({ client_id: appId(), client_secret: readSecret(clientSecret) });
  const post = (domain: string, grant: Grant) =>
    postJson(fetch, {
      url: apiUrls(baseUrl, domain).tokens,
      body: new URLSearchParams({ ...grant }).toString(),
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      timeoutMs: TOKEN_TIMEOUT_MS,
    });

  async function request(domain: string, grant: Grant, credential: Credential): Promise<Tokens> {
    const tokens = readTokens(await post(domain, grant), credential, now);
    return { ...tokens, refreshToken: tokens.refreshToken ?? grant.refresh_token ?? null };
  }

  async function requestByForm(domain: string, appKey: string, { alg, audience }: AssertionForm): Promise<Tokens> {
    const client_id = appId();
    const grant: Grant = {
      client_id,
      grant_type: "client_credentials",
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      client_assertion: await signAssertion(appKey, alg, { clientId: client_id, audience, now: platformNow() }),
    };
    return { ...(await request(domain, grant, "app key")), appKey };
  }

  return {
    byClientCredentials: async (domain) =>
      request(domain, { ...app(), grant_type: "client_credentials" }, "client secret"),
    byRefreshToken: async (domain, refresh_token, credential = "refresh token") =>
      request(domain, { ...app(), grant_type: "refresh_token", refresh_token }, credential),

    async byIdToken(domain, idToken) {
      const response = await post(domain, { ...app(), ...EXCHANGE, subject_token: idToken });
      const { error } = response.body ?? {};
      if (response.status === 400 && REFUSED_ID_TOKEN.includes(String(error))) return { refused: String(error) };
      return readGranted(response, now);
    },

    async byAppKey(domain, appKey) {
      const forms = assertionForms(appKey, apiUrls(baseUrl, domain).tokens);
      let refused: unknown;
      for (const form of [...forms.slice(acceptedForm), ...forms.slice(0, acceptedForm)]) {
        try {
          const tokens = await requestByForm(domain, appKey, form);
          acceptedForm = forms.indexOf(form);
          return tokens;
        } catch (thrown) {
          const isForm = thrown instanceof PlatformError && [400, 401].includes(thrown.status ?? 0);
          if (!isForm) throw thrown;
          refused ??= thrown;
        }
      }
      throw refused;
    },
  };
}

/** Reads the tokens from an answer. @throws PlatformError if the platform gives no token */
function readTokens(response: JsonResponse, credential: Credential, now: () => number): Tokens {
  const { access_token, refresh_token, expires_in } = response.body ?? {};
  if (response.status !== 200 || !isToken(access_token)) throw refusal(response, credential);
  return {
    accessToken: access_token,
    refreshToken: isToken(refresh_token) ? refresh_token : null,
    expiresAt: now() + readLife(expires_in) * 1000,
  };
}

/** Reads the answer to an exchange. @throws PlatformError if the platform gives no token */
function readGranted(response: JsonResponse, now: () => number): Granted {
  const tokens = readTokens(response, "client secret", now);
  const { scope, expires_in } = response.body ?? {};
  const scopes = typeof scope === "string" ? scope.split(",").filter(isScope) : [];
  if (tokens.refreshToken !== null) return { kind: "refresh", tokens, scopes };
  // If a token cannot be refreshed, we use it until the platform refuses it. Then the next page view gets a new token.
  return { kind: "token", tokens: expires_in === undefined ? { ...tokens, expiresAt: null } : tokens, scopes };
}

/** Reads the client secret. A missing file is a failure of the connection, not a defect of the program. */
function readSecret(read: () => string): string {
  try {
    return read();
  } catch (thrown) {
    throw new PlatformError("unauthorized", messageOf(thrown));
  }
}

/** Reads a token's lifetime. @returns seconds */
function readLife(expiresIn: unknown): number {
  const isLife = typeof expiresIn === "number" && expiresIn > 0;
  return isLife ? Math.min(Math.floor(expiresIn), MAX_LIFE_S) : DEFAULT_LIFE_S;
}

/** Whether a value can be a token. Requests send it in a header, so it must be visible ASCII. */
function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]{1,4096}$/.test(value);
}

function isScope(text: string): boolean {
  return /^\w{1,100}$/.test(text);
}

function refusal(response: JsonResponse, credential: Credential): PlatformError {
  const { status, body, retryAfterMs } = response;
  if (status === 429 || status >= 500) {
    const message = `the platform answered HTTP ${status} to a request for a token`;
    return new PlatformError("unavailable", message, { status, retryAfterMs });
  }
  // The platform answers in JSON. So this answer is from a proxy, or was cut off.
  if (status === 200 && body === undefined) {
    return new PlatformError("unavailable", "the platform's answer to a request for a token is not JSON", { status });
  }
  const error = typeof body?.["error"] === "string" ? body["error"] : undefined;
  return new PlatformError("unauthorized", troubleOfTokenRequest(response, error, credential), {
    status,
    needsMerchant: true,
    movedTo: response.movedTo,
  });
}
