import {
  addressError,
  connectError,
  httpError,
  keptAnswer,
  type Outcome,
  timeoutError,
} from "../domain/deliveries/delivery.ts";
import { type EgressAllow, type Endpoint, parseEndpoint } from "../domain/deliveries/endpoint.ts";
import { SdsError } from "../domain/error.ts";
import { connectReason } from "../lib/networks.ts";
import { memoize } from "../lib/text.ts";
import { createTimeLimit, type TimeLimit, untilAborted } from "../lib/waits.ts";
import { type CheckedEndpoint, checkEndpoint, type Resolve } from "./address.ts";
import type { Connect } from "./connector.ts";

export interface AttemptSettings {
  resolve: Resolve;
  allow: EgressAllow;
  /** The time limit of a whole attempt: look-up, connection, TLS, headers and body. */
  timeoutMs: number;
}

interface WebhookRequest {
  url: string;
  /** The webhook's own headers. `requestBytes` adds HTTP's headers, such as Host. */
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}

export interface AttemptOutcome extends Outcome {
  /** Whether the endpoint hung until the time limit. A hanging endpoint gets fewer slots than a failing endpoint. */
  timedOut: boolean;
}

const REMEMBERED_URLS = 1_000;

/**
 * Makes one attempt to deliver a webhook, within the timeout. A failure of the endpoint is an outcome, not an error.
 * Rejects with an SdsError `failed` if this process cannot open sockets.
 */
export type WebhookAttempt = (request: WebhookRequest) => Promise<AttemptOutcome>;

export function createWebhookAttempt(settings: AttemptSettings, connect: Connect): WebhookAttempt {
  // Caches only the parsed URL. The addresses are checked at every attempt.
  const parse = memoize(REMEMBERED_URLS, (url) => parseEndpoint(url, settings.allow));
  return async (request) => {
    const limit = createTimeLimit(settings.timeoutMs);
    let resolving: string | undefined;
    const resolve = async (host: string) => {
      resolving = host;
      const addresses = await untilAborted(settings.resolve(host), limit.signal);
      resolving = undefined;
      return addresses;
    };
    try {
      const checked = await checkEndpoint(request.url, resolve, settings.allow, parse);
      return { ...(await send(request, checked, connect, limit)), timedOut: false };
    } catch (thrown) {
      if (thrown instanceof SdsError) throw thrown;
      if (!limit.isOver()) return { statusCode: null, error: connectError(connectReason(thrown)), timedOut: false };
      const error =
        resolving === undefined
          ? timeoutError(settings.timeoutMs)
          : connectError(`the name ${resolving} did not resolve in time`);
      return { statusCode: null, error, timedOut: true };
    }
  };
}

async function send(
  request: WebhookRequest,
  checked: CheckedEndpoint,
  connect: Connect,
  { signal, isOver }: TimeLimit,
): Promise<Outcome> {
  signal.throwIfAborted();
  if ("refused" in checked) return { statusCode: null, error: addressError(checked.refused) };
  if ("unresolved" in checked) return { statusCode: null, error: connectError(checked.unresolved) };
  const { endpoint, addresses } = checked;
  const { url, host, isAddress, port } = endpoint;
  const tls = url.protocol === "https:" ? { tlsHost: host } : {};
  const connection = await connect({ host, isAddress, port, addresses, ...tls }, signal);
  try {
    // Nothing is sent after the time limit, because another node may attempt the same delivery then.
    const { status, body } = await untilAborted(connection.exchange(requestBytes(endpoint, request), isOver), signal);
    const error = status >= 200 && status < 300 ? null : httpError(status);
    return { statusCode: status, error, answer: keptAnswer(body) };
  } finally {
    connection.close();
  }
}

/** Writes the request (RFC 9112). `Connection: close` prevents reuse, because a reused connection may be dead. */
function requestBytes({ url }: Endpoint, { headers, body }: WebhookRequest): Uint8Array {
  let head = `POST ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n`;
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
  head += `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}
