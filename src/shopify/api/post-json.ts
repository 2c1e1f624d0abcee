import { isDomain } from "../../domain/shop.ts";
import { type JsonObject, parseObject } from "../../lib/json.ts";
import { connectReason } from "../../lib/networks.ts";
import { PlatformError } from "./platform-error.ts";

const RESPONSE_TIMEOUT_MS = 30_000;
/** Maximum size of a response. All responses to our queries are shorter. */
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

export interface PostRequest {
  url: string;
  body: string;
  headers: Record<string, string>;
  /** The time limit for the complete response. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface JsonResponse {
  status: number;
  /** The wait that the header Retry-After asks for. */
  retryAfterMs: number | undefined;
  /** The version of the platform's API that answered; null if the response does not name it. */
  apiVersion: string | null;
  /** The domain in the header Location; undefined if this is the requested domain, or if the header is missing. */
  movedTo?: string | undefined;
  /** undefined if the body is not a JSON object. */
  body: JsonObject | undefined;
}

/**
 * Posts a request. Does not follow redirects, because another host would get the token.
 * @throws PlatformError `unavailable` if no complete response arrives
 */
export async function postJson(
  fetch: typeof globalThis.fetch,
  { url, body, headers, timeoutMs = RESPONSE_TIMEOUT_MS, signal }: PostRequest,
): Promise<JsonResponse> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const options: BunFetchRequestInit = {
    method: "POST",
    body,
    headers: { Accept: "application/json", "User-Agent": "sds", ...headers },
    redirect: "manual",
    proxy: false,
    signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
  };
  try {
    const response = await fetch(url, options);
    const text = await readText(response);
    const retryAfterMs = readRetryAfter(response.headers.get("retry-after"));
    const movedTo = readDomain(response.headers.get("location"), url);
    const apiVersion = response.headers.get("x-shopify-api-version");
    return { status: response.status, retryAfterMs, apiVersion, movedTo, body: parseObject(text) };
  } catch (thrown) {
    if (thrown instanceof PlatformError) throw thrown;
    if (timeout.aborted || signal?.aborted === true) {
      throw new PlatformError("unavailable", "the platform did not answer in time");
    }
    throw new PlatformError("unavailable", `the platform cannot be reached: ${connectReason(thrown)}`);
  }
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of response.body ?? []) {
    byteCount += chunk.length;
    if (byteCount > MAX_RESPONSE_BYTES) throw new PlatformError("unavailable", "the platform's answer is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Returns the domain of a redirect's address; undefined if the request already went to that domain. */
function readDomain(location: string | null, asked: string): string | undefined {
  const { hostname } = URL.parse(location ?? "", asked) ?? {};
  const isOther = hostname !== undefined && hostname !== new URL(asked).hostname;
  return isOther && isDomain(hostname) ? hostname : undefined;
}

/** Reads the header Retry-After. The platform writes seconds, never a date. @returns milliseconds */
function readRetryAfter(header: string | null): number | undefined {
  return header !== null && /^\d{1,5}(\.\d+)?$/.test(header) ? Number(header) * 1000 : undefined;
}
