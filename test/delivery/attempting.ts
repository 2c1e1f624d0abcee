import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { Resolve } from "../../src/delivery/address.ts";
import { createWebhookAttempt } from "../../src/delivery/attempt.ts";
import { type Connect, createConnector } from "../../src/delivery/connector.ts";
import { webhookHeaders } from "../../src/delivery/deliverer.ts";
import { parseNetworks } from "../../src/lib/networks.ts";
import { afterTest } from "../support/cleanup.ts";
import { LIMIT_MS } from "../support/eventually.ts";

export const LOOPBACK = parseNetworks("127.0.0.0/8");
/** The timeout of attempts that must time out. */
export const BRIEF_MS = 400;
export const TIMED_OUT = { statusCode: null, error: "The endpoint did not answer within 0.4 seconds.", timedOut: true };
const tls = join(import.meta.dir, "../support/tls");
const AUTHORITY = await Bun.file(join(tls, "authority.pem")).text();

export const SUCCESS = { statusCode: 200, error: null, timedOut: false };

/** The expected result of an attempt that could not connect. */
export function notConnected(reason: string) {
  return { statusCode: null, error: `Could not connect to the endpoint: ${reason}.`, timedOut: false };
}

/** The headers of an attempt, without its time and its signature. The signature depends on the time. */
export const HEADERS = webhookHeaders({ id: "whd_1", topic: "order.charged", test: false }, "sha256=00");

export interface Options {
  resolve?: Resolve;
  allow?: typeof LOOPBACK;
  body?: string;
  timeoutMs?: number;
  /**
   * Whether the attempt trusts certificates of the test authority. Otherwise it trusts only the machine's authorities.
   */
  trusting?: boolean;
  /** Called when the request waits for its connection. */
  onWaiting?: () => void;
}

/** Makes one attempt at a URL. A name in the URL is resolved to this machine. */
export function send(
  url: string,
  {
    resolve = async () => ["127.0.0.1"],
    allow = LOOPBACK,
    body = "{}",
    timeoutMs = LIMIT_MS,
    trusting = false,
    onWaiting = () => {},
  }: Options = {},
) {
  const open = createConnector(trusting ? { authorities: AUTHORITY } : {});
  const connect: Connect = async (...to) => {
    const connection = await open(...to);
    const { exchange } = connection;
    return Object.assign(connection, {
      exchange(...request: Parameters<typeof exchange>) {
        const answer = exchange(...request);
        onWaiting();
        return answer;
      },
    });
  };
  return createWebhookAttempt(
    { resolve, allow, timeoutMs },
    connect,
  )({ url, headers: HEADERS, body: Buffer.from(body) });
}

/** Starts a server that hands each connection to the test when its request begins. */
export async function rawServer(serve: (socket: Socket, request: string) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", (chunk) => serve(socket, chunk.toString()));
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  afterTest(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
}

/**
 * Starts an HTTP server, with TLS if there is a certificate.
 * @returns its URL; with TLS, the URL has a host name instead of the address
 */
export function httpServer(answer: (request: Request) => Response | Promise<Response>, certificate?: string): string {
  const secure =
    certificate === undefined
      ? {}
      : { tls: { cert: Bun.file(join(tls, `${certificate}.pem`)), key: Bun.file(join(tls, `${certificate}.key`)) } };
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer, ...secure });
  afterTest(() => server.stop(true));
  return certificate === undefined ? `http://127.0.0.1:${server.port}/` : `https://hooks.example.test:${server.port}/`;
}
