import { describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { Resolve } from "../../src/delivery/address.ts";
import { createWebhookAttempt } from "../../src/delivery/attempt.ts";
import { type Connect, createConnector, type Destination } from "../../src/delivery/connector.ts";
import { parseEgressAllow } from "../../src/domain/endpoint.ts";
import { afterTest } from "../support/cleanup.ts";

const LOOPBACK = parseEgressAllow("127.0.0.0/8");
const TIMEOUT_MS = 400;
const TIMED_OUT = { statusCode: null, error: "The endpoint did not answer within 0.4 seconds.", timedOut: true };
const tls = join(import.meta.dir, "../support/tls");
const AUTHORITY = await Bun.file(join(tls, "authority.pem")).text();

interface Options {
  resolve?: Resolve;
  allow?: typeof LOOPBACK;
  body?: string;
  timeoutMs?: number;
  /** Trusts the test authority, as a real machine trusts public ones. */
  trusting?: boolean;
}

function send(
  url: string,
  {
    resolve = async () => ["127.0.0.1"],
    allow = LOOPBACK,
    body = "{}",
    timeoutMs = TIMEOUT_MS,
    trusting = false,
  }: Options = {},
) {
  const connect = createConnector(trusting ? { authorities: AUTHORITY } : {});
  return createWebhookAttempt(
    { resolve, allow, timeoutMs },
    connect,
  )({ url, topic: "order.charged", body, signature: "sha256=00" });
}

/** A server that hands each connection to the test when its request begins. */
async function rawServer(serve: (socket: Socket, request: string) => void): Promise<string> {
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

function httpServer(answer: (request: Request) => Response | Promise<Response>, certificate?: string): string {
  const secure =
    certificate === undefined
      ? {}
      : { tls: { cert: Bun.file(join(tls, `${certificate}.pem`)), key: Bun.file(join(tls, `${certificate}.key`)) } };
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer, ...secure });
  afterTest(() => server.stop(true));
  return certificate === undefined ? `http://127.0.0.1:${server.port}/` : `https://hooks.example.test:${server.port}/`;
}

test("sends the body with its headers to the path of the URL", async () => {
  const seen: unknown[] = [];
  const url = httpServer(async (request) => {
    const { method, headers } = request;
    seen.push({
      method,
      path: new URL(request.url).pathname + new URL(request.url).search,
      body: await request.text(),
    });
    for (const name of ["content-type", "x-service-topic", "x-service-signature", "host"]) seen.push(headers.get(name));
    return new Response("ok");
  });
  expect(await send(`${url}hooks?a=1`, { body: '{"a":"ä"}' })).toEqual({
    statusCode: 200,
    error: null,
    timedOut: false,
  });
  const { host } = new URL(url);
  expect(seen).toEqual([
    { method: "POST", path: "/hooks?a=1", body: '{"a":"ä"}' },
    "application/json",
    "order.charged",
    "sha256=00",
    host,
  ]);
});

test.each([200, 201, 202, 204, 299])("HTTP %i is a success", async (status) => {
  const url = httpServer(() => new Response(null, { status }));
  expect(await send(url)).toEqual({ statusCode: status, error: null, timedOut: false });
});

test.each([300, 304, 400, 401, 404, 410, 429, 500, 503, 599])("HTTP %i is a failure", async (status) => {
  const url = httpServer(() => new Response(null, { status }));
  expect(await send(url)).toEqual({
    statusCode: status,
    error: `The endpoint responded with HTTP ${status}.`,
    timedOut: false,
  });
});

test.each([301, 302, 303, 307, 308])(
  "a redirect (%i) is a failure and is not followed, so it cannot lead to a private address",
  async (status) => {
    let followed = false;
    const inner = httpServer(() => {
      followed = true;
      return new Response();
    });
    const url = httpServer(() => new Response(null, { status, headers: { Location: inner } }));
    expect(await send(url)).toEqual({
      statusCode: status,
      error: `The endpoint responded with HTTP ${status}.`,
      timedOut: false,
    });
    expect(followed).toBe(false);
  },
);

test("each attempt has a connection of its own", async () => {
  const ports = new Set<number | undefined>();
  const url = await rawServer((socket) => {
    ports.add(socket.remotePort);
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  for (let n = 0; n < 3; n += 1) expect(await send(url)).toMatchObject({ statusCode: 200 });
  expect(ports.size).toBe(3);
});

test("an answer's body is not unpacked", async () => {
  const url = httpServer(() => new Response("this is not gzip", { headers: { "Content-Encoding": "gzip" } }));
  expect(await send(url)).toEqual({ statusCode: 200, error: null, timedOut: false });
});

describe("an endpoint that", () => {
  test("never answers", async () => {
    const began = performance.now();
    expect(await send(await rawServer(() => undefined))).toEqual(TIMED_OUT);
    expect(performance.now() - began).toBeLessThan(TIMEOUT_MS * 2);
  });

  test("has a name and never answers", async () => {
    const url = (await rawServer(() => undefined)).replace("127.0.0.1", "hooks.example.test");
    expect(await send(url)).toEqual(TIMED_OUT);
  });

  test("never answers is disconnected at the timeout", async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const url = await rawServer((socket) => {
      socket.on("close", () => resolve());
    });
    expect(await send(url)).toEqual(TIMED_OUT);
    await closed;
  });

  test("drips its headers", async () => {
    const url = await rawServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      const timer = setInterval(() => socket.write("A: b\r\n"), 20);
      socket.on("close", () => clearInterval(timer));
    });
    expect(await send(url)).toEqual(TIMED_OUT);
  });

  test("drips its body", async () => {
    const url = await rawServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
      const timer = setInterval(() => socket.write("x"), 20);
      socket.on("close", () => clearInterval(timer));
    });
    expect(await send(url)).toEqual(TIMED_OUT);
  });

  test("answers with 200 MB is read up to the limit, and memory stays flat", async () => {
    const chunk = Buffer.alloc(1 << 20);
    let sent = 0;
    const url = await rawServer((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${200 << 20}\r\n\r\n`);
      const pump = () => {
        while (sent < 200 && socket.writable) {
          sent += 1;
          if (!socket.write(chunk)) return;
        }
      };
      socket.on("drain", pump);
      pump();
    });
    const before = process.memoryUsage().rss;
    expect(await send(url, { timeoutMs: 5_000 })).toEqual({ statusCode: 200, error: null, timedOut: false });
    expect(sent).toBeLessThan(32);
    expect(process.memoryUsage().rss - before).toBeLessThan(60 << 20);
  });

  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  test.each<[string, string, string, number | null]>([
    ["interim answers", "", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000), null],
    ["extensions of chunks", chunked, `1;${"x".repeat(9_999)}\r\na\r\n`, 200],
    ["trailers", `${chunked}0\r\n`, "A: b\r\n".repeat(1_000), 200],
  ])("answers with %s without end is not read for long", async (_name, start, again, statusCode) => {
    let sent = 0;
    const url = await rawServer((socket) => {
      socket.write(start);
      const pump = () => {
        while (socket.writable) {
          sent += again.length;
          if (!socket.write(again)) return;
        }
      };
      socket.on("drain", pump);
      pump();
    });
    const error = "Could not connect to the endpoint: the answer's headers are too large.";
    expect(await send(url, { timeoutMs: 5_000 })).toEqual({
      statusCode,
      error: statusCode === null ? error : null,
      timedOut: false,
    });
    // What the system takes into its buffers is never read.
    expect(sent).toBeLessThan(16 << 20);
  });

  test("answers with 100,000 bytes of headers fails", async () => {
    const url = await rawServer((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\nA: ${"x".repeat(100_000)}\r\nContent-Length: 0\r\n\r\n`),
    );
    expect(await send(url)).toEqual({
      statusCode: null,
      error: "Could not connect to the endpoint: the answer's headers are too large.",
      timedOut: false,
    });
  });

  test("answers without HTTP", async () => {
    const url = await rawServer((socket) => socket.end("\u0000\u0001 this is not HTTP\r\n\r\n"));
    expect(await send(url)).toEqual({
      statusCode: null,
      error: "Could not connect to the endpoint: the answer is not HTTP.",
      timedOut: false,
    });
  });

  test("resets the connection after the request", async () => {
    const url = await rawServer((socket) => socket.resetAndDestroy());
    expect(await send(url)).toEqual({
      statusCode: null,
      error: "Could not connect to the endpoint: the connection was closed before the answer ended.",
      timedOut: false,
    });
  });

  test("closes the connection before its body ends", async () => {
    const url = await rawServer((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"));
    const { error } = await send(url);
    expect(error).toBe("Could not connect to the endpoint: the connection was closed before the answer ended.");
  });

  test("refuses the connection", async () => {
    const url = httpServer(() => new Response());
    const { port } = new URL(url);
    const closed = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => closed.once("listening", resolve));
    const free = (closed.address() as { port: number }).port;
    await new Promise((resolve) => closed.close(resolve));
    expect(free).not.toBe(Number(port));
    expect(await send(`http://127.0.0.1:${free}/`)).toEqual({
      statusCode: null,
      error: "Could not connect to the endpoint: the connection was refused.",
      timedOut: false,
    });
  });

  test("has a name that does not resolve", async () => {
    const resolve = async () => Promise.reject(new Error("ENOTFOUND"));
    expect(await send("https://hooks.example.test/", { resolve })).toEqual({
      statusCode: null,
      error: "Could not connect to the endpoint: the name hooks.example.test does not resolve.",
      timedOut: false,
    });
  });

  test("has a name whose look-up never ends", async () => {
    expect(await send("https://hooks.example.test/", { resolve: () => new Promise(() => undefined) })).toEqual({
      statusCode: null,
      error: "Could not connect to the endpoint: the name hooks.example.test did not resolve in time.",
      timedOut: true,
    });
  });
});

describe("addresses", () => {
  const refused = (reason: string) => ({
    statusCode: null,
    error: `The endpoint's address is not allowed: ${reason}.`,
    timedOut: false,
  });

  test("a name that now has a private address is refused", async () => {
    const answers = [["93.184.215.14"], ["10.0.0.1"]];
    const resolve: Resolve = async () => answers.shift() ?? [];
    await resolve("at save");
    expect(await send("https://hooks.example.test/", { resolve, allow: [] })).toEqual(
      refused("10.0.0.1 is a private address"),
    );
  });

  test("the name is looked up and checked again at the next attempt", async () => {
    const named = httpServer(() => new Response()).replace("127.0.0.1", "hooks.example.test");
    const answers = [["127.0.0.1"], ["10.0.0.1"]];
    const resolve: Resolve = async () => answers.shift() ?? [];
    const attempt = createWebhookAttempt({ resolve, allow: LOOPBACK, timeoutMs: TIMEOUT_MS }, createConnector());
    const request = { url: named, topic: "order.charged", body: "{}", signature: "sha256=00" };
    expect(await attempt(request)).toEqual({ statusCode: 200, error: null, timedOut: false });
    expect(await attempt(request)).toEqual(refused("only https:// URLs are accepted"));
  });

  test("one refused address of several refuses all", async () => {
    expect(
      await send("https://hooks.example.test/", {
        resolve: async () => ["93.184.215.14", "169.254.169.254"],
        allow: [],
      }),
    ).toEqual(refused("169.254.169.254 is a link-local address"));
  });

  test("the name is looked up once, and the request goes to the address that was checked", async () => {
    let looked = 0;
    let host: string | null = null;
    const url = httpServer((request) => {
      host = request.headers.get("host");
      return new Response();
    });
    const named = url.replace("127.0.0.1", "hooks.example.test");
    const resolve = async () => {
      looked += 1;
      return looked === 1 ? ["127.0.0.1"] : ["127.0.0.2"];
    };
    expect(await send(named, { resolve })).toEqual({ statusCode: 200, error: null, timedOut: false });
    expect(looked).toBe(1);
    expect(host as string | null).toBe(new URL(named).host);
  });

  test("if the first address of a name cannot be reached, the next one is tried", async () => {
    const url = httpServer(() => new Response());
    const named = url.replace("127.0.0.1", "hooks.example.test");
    expect(await send(named, { resolve: async () => ["127.0.0.9", "127.0.0.1"] })).toEqual({
      statusCode: 200,
      error: null,
      timedOut: false,
    });
  });

  test("of a name with many addresses, four are tried", async () => {
    const url = httpServer(() => new Response());
    const named = url.replace("127.0.0.1", "hooks.example.test");
    const unreachable = ["127.0.0.6", "127.0.0.7", "127.0.0.8", "127.0.0.9"];
    expect(await send(named, { resolve: async () => [...unreachable.slice(1), "127.0.0.1"] })).toMatchObject({
      statusCode: 200,
    });
    expect(await send(named, { resolve: async () => [...unreachable, "127.0.0.1"] })).toEqual({
      statusCode: null,
      error: "Could not connect to the endpoint: the connection was refused.",
      timedOut: false,
    });
  });

  test("after a request may have been sent, no other address gets it", async () => {
    let requests = 0;
    const url = await rawServer((socket) => {
      requests += 1;
      socket.resetAndDestroy();
    });
    const { error } = await send(url.replace("127.0.0.1", "hooks.example.test"), {
      resolve: async () => ["127.0.0.1", "127.0.0.1"],
    });
    expect(error).toBe("Could not connect to the endpoint: the connection was closed before the answer ended.");
    expect(requests).toBe(1);
  });

  const NAME = "hooks.example.test";
  test.each<[string, string, Omit<Destination, "isAddress">]>([
    [
      "https://hooks.example.test/a?b=c",
      "2606:2800:21f::1",
      { host: NAME, addresses: ["2606:2800:21f::1"], port: 443, tlsHost: NAME },
    ],
    [
      "https://hooks.example.test:8443/",
      "93.184.215.14",
      { host: NAME, addresses: ["93.184.215.14"], port: 8443, tlsHost: NAME },
    ],
    ["http://hooks.example.test:8080/", "127.0.0.1", { host: NAME, addresses: ["127.0.0.1"], port: 8080 }],
    [
      "https://93.184.215.14/",
      "1.1.1.1",
      { host: "93.184.215.14", addresses: ["93.184.215.14"], port: 443, tlsHost: "93.184.215.14" },
    ],
  ])("a request for %s, looked up as %s, goes to what was checked", async (url, address, destination) => {
    const seen: unknown[] = [];
    const connect: Connect = async (wanted) => {
      seen.push(wanted);
      throw new Error("it ends here");
    };
    const settings = { resolve: async () => [address], allow: LOOPBACK, timeoutMs: TIMEOUT_MS };
    await createWebhookAttempt(settings, connect)({ url, topic: "order.charged", body: "{}", signature: "sha256=00" });
    expect(seen).toEqual([{ ...destination, isAddress: destination.host !== NAME }]);
  });

  test("a proxy variable of the environment has no effect", async () => {
    let proxied = false;
    const proxy = httpServer(() => {
      proxied = true;
      return new Response("proxy", { status: 502 });
    });
    for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"]) {
      const before = process.env[name];
      process.env[name] = proxy;
      afterTest(() => {
        if (before === undefined) delete process.env[name];
        else process.env[name] = before;
      });
    }
    expect(await send(httpServer(() => new Response()))).toEqual({ statusCode: 200, error: null, timedOut: false });
    expect(
      await send(
        httpServer(() => new Response(), "valid"),
        { trusting: true },
      ),
    ).toEqual({ statusCode: 200, error: null, timedOut: false });
    expect(proxied).toBe(false);
  });
});

describe("TLS", () => {
  const failed = (reason: string) => ({
    statusCode: null,
    error: `Could not connect to the endpoint: ${reason}.`,
    timedOut: false,
  });

  test("a certificate for the name is accepted, although the connection goes to an address", async () => {
    expect(
      await send(
        httpServer(() => new Response(), "valid"),
        { trusting: true },
      ),
    ).toEqual({ statusCode: 200, error: null, timedOut: false });
  });

  test("a certificate for another name is refused", async () => {
    expect(
      await send(
        httpServer(() => new Response(), "other"),
        { trusting: true },
      ),
    ).toEqual(failed("the TLS certificate is for another name"));
  });

  test("an expired certificate is refused", async () => {
    expect(
      await send(
        httpServer(() => new Response(), "expired"),
        { trusting: true },
      ),
    ).toEqual(failed("the TLS certificate has expired"));
  });

  test("a certificate of an unknown authority is refused", async () => {
    expect(await send(httpServer(() => new Response(), "valid"))).toEqual(
      failed("the TLS certificate is from an unknown authority, or its chain is incomplete"),
    );
  });

  test("an endpoint without TLS is a failed connection", async () => {
    const url = await rawServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const { error } = await send(url.replace("http:", "https:"));
    expect(error).toMatch(/^Could not connect to the endpoint: /);
  });
});
