import { type JsonObject, parseObject } from "../../lib/json.ts";
import { connectReason } from "../../lib/networks.ts";
import { PlatformError } from "./platform-error.ts";

const RESPONSE_TIMEOUT_MS = 30_000;
/** Limit for a response. All responses to our queries are shorter. */
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
  /** From the header Retry-After. */
  retryAfterMs: number | undefined;
  /** undefined if the body is not a JSON object. */
  body: JsonObject | undefined;
}

/** Follows no redirects: they would get the token. @throws PlatformError `unavailable` without a whole response */
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
    return { status: response.status, retryAfterMs, body: parseObject(text) };
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

/** The platform writes seconds, never a date. @returns milliseconds */
function readRetryAfter(header: string | null): number | undefined {
  return header !== null && /^\d{1,5}(\.\d+)?$/.test(header) ? Number(header) * 1000 : undefined;
}
