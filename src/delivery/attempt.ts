import { connectReason, isUnreached } from "../domain/connect-reason.ts";
import { addressError, connectError, httpError, type Outcome, timeoutError } from "../domain/delivery.ts";
import type { EgressAllow, Endpoint } from "../domain/endpoint.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { checkEndpoint, type Resolve } from "./address.ts";

export interface AttemptSettings {
  fetch: typeof fetch;
  resolve: Resolve;
  allow: EgressAllow;
  /** For everything together: look-up, connection, TLS, headers, body. */
  timeoutMs: number;
}

export interface WebhookRequest {
  url: string;
  topic: string;
  body: string;
  signature: string;
}

export interface AttemptOutcome extends Outcome {
  /** An endpoint that hangs gets fewer slots than one that fails. */
  timedOut: boolean;
}

/** The rest of a longer answer is not read. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** How many addresses of a name are tried. */
const MAX_ADDRESSES = 4;

/** Attempts to deliver a webhook once. Never rejects: every failure is an outcome, and comes within the timeout. */
export async function attempt(request: WebhookRequest, settings: AttemptSettings): Promise<AttemptOutcome> {
  const signal = AbortSignal.timeout(settings.timeoutMs);
  let resolving: string | undefined;
  const resolve = (host: string) => {
    resolving = host;
    return settings.resolve(host).finally(() => {
      resolving = undefined;
    });
  };
  try {
    return { ...(await untilAborted(send(request, { ...settings, resolve }, signal), signal)), timedOut: false };
  } catch (thrown) {
    if (!signal.aborted) return { statusCode: null, error: connectError(connectReason(thrown)), timedOut: false };
    if (resolving === undefined) return { statusCode: null, error: timeoutError(settings.timeoutMs), timedOut: true };
    return { statusCode: null, error: connectError(`the name ${resolving} did not resolve in time`), timedOut: true };
  }
}

async function send(request: WebhookRequest, settings: AttemptSettings, signal: AbortSignal): Promise<Outcome> {
  const { fetch, resolve, allow } = settings;
  const checked = await checkEndpoint(request.url, resolve, allow);
  if ("refused" in checked) return { statusCode: null, error: addressError(checked.refused) };
  if ("unresolved" in checked) return { statusCode: null, error: connectError(checked.unresolved) };
  const { endpoint, addresses } = checked;
  let lastError: unknown;
  for (const address of addresses.slice(0, MAX_ADDRESSES)) {
    try {
      const response = await fetch(urlAt(endpoint, address), fetchOptions(endpoint, request, signal));
      await readAnswer(response);
      return { statusCode: response.status, error: response.ok ? null : httpError(response.status) };
    } catch (thrown) {
      // The next address is tried only if there was no connection: an attempt never sends the request twice.
      if (!isUnreached(thrown)) throw thrown;
      lastError = thrown;
    }
  }
  throw lastError;
}

/** The endpoint's URL with the checked address in place of the name. */
function urlAt({ url, port }: Endpoint, address: string): string {
  const host = address.includes(":") ? `[${address}]` : address;
  return `${url.protocol}//${host}:${port}${url.pathname}${url.search}`;
}

function fetchOptions(endpoint: Endpoint, request: WebhookRequest, signal: AbortSignal): BunFetchRequestInit {
  const { url, host, isAddress } = endpoint;
  const { topic, body, signature } = request;
  return {
    method: "POST",
    body,
    headers: { Host: url.host, ...webhookHeaders(topic, signature) },
    // The connection goes to an address, but the certificate must be for the name.
    ...(url.protocol === "https:" && !isAddress && { tls: { serverName: host } }),
    redirect: "manual",
    // Otherwise a proxy variable of the environment would take every request.
    proxy: false,
    // A kept connection may be dead, and the attempt would fail.
    keepalive: false,
    decompress: false,
    signal,
  };
}

/** The headers of every attempt of a webhook, without those that the connection needs. */
export function webhookHeaders(topic: string, signature: string): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "User-Agent": "sds",
    "X-Service-Topic": topic,
    "X-Service-Signature": signature,
  };
}

/** Reads up to the limit or the end of the answer, whichever comes first. */
async function readAnswer(response: Response): Promise<void> {
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes >= MAX_ANSWER_BYTES) break;
  }
}
