import { connectReason, isUnreached } from "../domain/connect-reason.ts";
import { addressError, connectError, httpError, type Outcome, timeoutError } from "../domain/delivery.ts";
import type { EgressAllow, Endpoint } from "../domain/endpoint.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { checkEndpoint, type Resolve } from "./address.ts";

export interface AttemptSettings {
  fetch: typeof fetch;
  resolve: Resolve;
  allow: EgressAllow;
  /** Milliseconds for all of it: look-up, connection, TLS, headers, body. */
  timeout: number;
}

export interface Request {
  url: string;
  topic: string;
  body: string;
  signature: string;
}

/** More of an answer is not read. */
const MAX_ANSWER = 64 * 1024;
/** Of a name with many addresses that cannot be reached. */
const MAX_ADDRESSES = 4;

/**
 * One attempt to deliver. Never rejects: whatever an endpoint does is an outcome, within the timeout.
 * @returns `timedOut` beside the outcome, for an endpoint that hangs is treated otherwise than one that fails
 */
export async function attempt(request: Request, settings: AttemptSettings): Promise<Outcome & { timedOut: boolean }> {
  const signal = AbortSignal.timeout(settings.timeout);
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
    if (signal.aborted) {
      const error = resolving === undefined ? timeoutError(settings.timeout) : connectError(`the name ${resolving} did not resolve in time`);
      return { statusCode: null, error, timedOut: true };
    }
    return { statusCode: null, error: connectError(connectReason(thrown)), timedOut: false };
  }
}

async function send(request: Request, { fetch, resolve, allow }: AttemptSettings, signal: AbortSignal): Promise<Outcome> {
  const checked = await checkEndpoint(request.url, resolve, allow);
  if ("refused" in checked) return { statusCode: null, error: addressError(checked.refused) };
  if ("unresolved" in checked) return { statusCode: null, error: connectError(checked.unresolved) };
  const { endpoint, addresses } = checked;
  let unreached: unknown;
  for (const address of addresses.slice(0, MAX_ADDRESSES)) {
    try {
      const response = await fetch(addressed(endpoint, address), options(endpoint, request, signal));
      await readAnswer(response);
      return { statusCode: response.status, error: response.ok ? null : httpError(response.status) };
    } catch (thrown) {
      // Only where no connection came about: what may have been sent is not sent again within an attempt.
      if (!isUnreached(thrown)) throw thrown;
      unreached = thrown;
    }
  }
  throw unreached;
}

/** The endpoint's URL with the checked address in the place of its name. */
function addressed({ url, port }: Endpoint, address: string): string {
  const host = address.includes(":") ? `[${address}]` : address;
  return `${url.protocol}//${host}:${port}${url.pathname}${url.search}`;
}

function options({ url, host, isAddress }: Endpoint, { topic, body, signature }: Request, signal: AbortSignal): BunFetchRequestInit {
  return {
    method: "POST",
    body,
    headers: {
      Host: url.host,
      ...webhookHeaders(topic, signature),
    },
    // The certificate is checked against the name, although the connection goes to an address.
    ...(url.protocol === "https:" && !isAddress && { tls: { serverName: host } }),
    redirect: "manual",
    // Else a proxy variable of the environment would take every request.
    proxy: false,
    // A connection kept from before may be dead, and would burn an attempt.
    keepalive: false,
    decompress: false,
    signal,
  };
}

/** What every attempt of a webhook has in its head, beside what the connection needs. */
export function webhookHeaders(topic: string, signature: string): Record<string, string> {
  return { "Content-Type": "application/json", "User-Agent": "sds", "X-Service-Topic": topic, "X-Service-Signature": signature };
}

/** Reads to the end of the answer or to the limit, whichever comes first. */
async function readAnswer(response: Response): Promise<void> {
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size >= MAX_ANSWER) break;
  }
}
