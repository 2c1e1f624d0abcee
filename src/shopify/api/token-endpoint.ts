import { messageOf } from "../../domain/error.ts";
import type { Tokens } from "../../domain/platform/connection.ts";
import { apiUrls } from "./address.ts";
import { PlatformError } from "./platform-error.ts";
import { type JsonResponse, postJson } from "./post-json.ts";
import { troubleOfTokenRequest } from "./trouble.ts";

/** Requests tokens from the platform. */
export interface TokenEndpoint {
  /** Requests a token with the app's own credentials. @throws PlatformError */
  byClientCredentials(domain: string): Promise<Tokens>;
  /**
   * Requests the next pair of tokens. May be repeated, because the platform accepts the old refresh token until the new
   * one is used.
   * @param isNew whether the operator has just given the refresh token: messages then do not say to connect again
   * @throws PlatformError
   */
  byRefreshToken(domain: string, refreshToken: string, isNew?: boolean): Promise<Tokens>;
}

interface Dependencies {
  fetch: typeof globalThis.fetch;
  /** A URL in which `{shop}` stands for the domain. */
  baseUrl: string;
  clientId: string | null;
  /** The newest secret of the app. @throws if the app has no secret */
  clientSecret: () => string;
  now: () => number;
}

/** Limit for a request that other processes wait for. `byRefreshToken` says why the request may be repeated. */
export const TOKEN_TIMEOUT_MS = 10_000;

/** The parameters of a token request that depend on how the token is granted. */
type Grant = { grant_type: string; refresh_token?: string };

/** The upper limit of a token's life, in seconds. */
const MAX_LIFE_S = 366 * 86_400;
/** The life of a token whose answer names none, in seconds. Such a token is not permanent. */
const DEFAULT_LIFE_S = 3_600;

export function createTokenEndpoint({ fetch, baseUrl, clientId, clientSecret, now }: Dependencies): TokenEndpoint {
  async function request(domain: string, grant: Grant, isNew = false): Promise<Tokens> {
    if (clientId === null) throw new PlatformError("unauthorized", "SDS_PLATFORM_CLIENT_ID is not set");
    const form = { client_id: clientId, client_secret: readSecret(clientSecret), ...grant };
    const response = await postJson(fetch, {
      url: apiUrls(baseUrl, domain).tokens,
      body: new URLSearchParams(form).toString(),
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      timeoutMs: TOKEN_TIMEOUT_MS,
    });
    const { access_token, refresh_token, expires_in } = response.body ?? {};
    if (response.status !== 200 || !isToken(access_token)) throw refusal(response, isNew);
    return {
      accessToken: access_token,
      refreshToken: isToken(refresh_token) ? refresh_token : (grant.refresh_token ?? null),
      expiresAt: now() + readLife(expires_in) * 1000,
    };
  }

  return {
    byClientCredentials: (domain) => request(domain, { grant_type: "client_credentials" }),
    byRefreshToken: (domain, refreshToken, isNew) =>
      request(domain, { grant_type: "refresh_token", refresh_token: refreshToken }, isNew),
  };
}

/** Reads the client secret. A missing file is a failure of the connection, not a defect of the program. */
function readSecret(read: () => string): string {
  try {
    return read();
  } catch (thrown) {
    throw new PlatformError("unauthorized", messageOf(thrown));
  }
}

/** @returns seconds */
function readLife(expiresIn: unknown): number {
  const isLife = typeof expiresIn === "number" && expiresIn > 0;
  return isLife ? Math.min(Math.floor(expiresIn), MAX_LIFE_S) : DEFAULT_LIFE_S;
}

/** Whether a value can be a token. A header may contain only visible ASCII. */
function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]{1,4096}$/.test(value);
}

function refusal({ status, body, retryAfterMs }: JsonResponse, isNew: boolean): PlatformError {
  if (status === 429 || status >= 500) {
    const message = `the platform answered HTTP ${status} to a request for a token`;
    return new PlatformError("unavailable", message, { status, retryAfterMs });
  }
  // A refusal is JSON. This answer is from a proxy, or was cut off.
  if (status === 200 && body === undefined) {
    return new PlatformError("unavailable", "the platform's answer to a request for a token is not JSON", { status });
  }
  const error = typeof body?.["error"] === "string" ? body["error"] : undefined;
  return new PlatformError("unauthorized", troubleOfTokenRequest(status, error, isNew), {
    status,
    needsMerchant: true,
  });
}
