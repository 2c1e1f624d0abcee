import { describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { pausableProcess } from "../support/process-clock.ts";
import { BRIEF_MS, httpServer, notConnected, rawServer, SUCCESS, send, TIMED_OUT } from "./attempting.ts";

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
  expect(await send(`${url}hooks?a=1`, { body: '{"a":"ä"}' })).toMatchObject(SUCCESS);
  const { host } = new URL(url);
  expect(seen).toEqual([
    { method: "POST", path: "/hooks?a=1", body: '{"a":"ä"}' },
    "application/json",
    "order.charged",
    "sha256=00",
    host,
  ]);
});

describe.each([
  { kind: "http", certificate: undefined },
  { kind: "https", certificate: "valid" },
])("over $kind, an attempt", ({ certificate }) => {
  /**
   * Starts an endpoint whose URL has a host name. The returned `pause` pauses the process for longer than the timeout
   * of the attempt.
   */
  function pausing() {
    let received = 0;
    const url = httpServer(() => {
      received += 1;
      return new Response();
    }, certificate);
    const pauseProcess = pausableProcess();
    const pause = () => pauseProcess(20_000);
    const named = url.replace("127.0.0.1", "hooks.example.test");
    return { url: named, options: { timeoutMs: 10_000, trusting: true }, pause, received: () => received };
  }

  test("sends nothing after its timeout if the process was paused during the look-up", async () => {
    const { url, options, pause, received } = pausing();
    const resolve = async () => {
      pause();
      return ["127.0.0.1"];
    };
    expect(await send(url, { ...options, resolve })).toMatchObject({ statusCode: null, timedOut: true });
    expect(received()).toBe(0);
  });

  test("sends nothing after its timeout if the process was paused while it connected", async () => {
    const { url, options, pause, received } = pausing();
    expect(await send(url, { ...options, onWaiting: pause })).toMatchObject({ statusCode: null, timedOut: true });
    expect(received()).toBe(0);
  });
});

test.each([200, 201, 202, 204, 299])("HTTP %i is a success", async (status) => {
  const url = httpServer(() => new Response(null, { status }));
  expect(await send(url)).toMatchObject({ statusCode: status, error: null, timedOut: false });
});

test.each([300, 304, 400, 401, 404, 410, 429, 500, 503, 599])("HTTP %i is a failure", async (status) => {
  const url = httpServer(() => new Response(null, { status }));
  expect(await send(url)).toMatchObject({
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
    expect(await send(url)).toMatchObject({
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
  expect(await send(url)).toMatchObject(SUCCESS);
});

describe("an endpoint that", () => {
  test("never answers", async () => {
    expect(await send(await rawServer(() => undefined), { timeoutMs: BRIEF_MS })).toEqual(TIMED_OUT);
  });

  test("has a name and never answers", async () => {
    const url = (await rawServer(() => undefined)).replace("127.0.0.1", "hooks.example.test");
    expect(await send(url, { timeoutMs: BRIEF_MS })).toEqual(TIMED_OUT);
  });

  test("never answers is disconnected at the timeout", async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const url = await rawServer((socket) => {
      socket.on("close", () => resolve());
    });
    expect(await send(url, { timeoutMs: BRIEF_MS })).toEqual(TIMED_OUT);
    await closed;
  });

  test.each([
    ["headers", "HTTP/1.1 200 OK\r\n", "A: b\r\n"],
    ["body", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "x"],
  ])("drips its %s", async (_name, start, drop) => {
    const url = await rawServer((socket) => {
      socket.write(start);
      const timer = setInterval(() => socket.write(drop), 20);
      socket.on("close", () => clearInterval(timer));
    });
    expect(await send(url, { timeoutMs: BRIEF_MS })).toEqual(TIMED_OUT);
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
    expect(await send(url)).toMatchObject(SUCCESS);
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
    expect(await send(url)).toMatchObject(
      statusCode === null ? notConnected("the answer's headers are too large") : SUCCESS,
    );
    // The program stops reading. So the endpoint can send only as much as the system's buffers take.
    expect(sent).toBeLessThan(16 << 20);
  });

  const closed = "the connection was closed before the answer ended";
  test.each<[string, string, (socket: Socket) => unknown]>([
    [
      "answers with 100,000 bytes of headers",
      "the answer's headers are too large",
      (socket) => socket.end(`HTTP/1.1 200 OK\r\nA: ${"x".repeat(100_000)}\r\nContent-Length: 0\r\n\r\n`),
    ],
    ["answers without HTTP", "the answer is not HTTP", (socket) => socket.end("\u0000\u0001 this is not HTTP\r\n\r\n")],
    ["resets the connection after the request", closed, (socket) => socket.resetAndDestroy()],
    [
      "closes the connection before its body ends",
      closed,
      (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
    ],
  ])("%s fails: %s", async (_name, reason, serve) => {
    expect(await send(await rawServer(serve))).toMatchObject(notConnected(reason));
  });

  test("refuses the connection", async () => {
    const url = httpServer(() => new Response());
    const { port } = new URL(url);
    const closed = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => closed.once("listening", resolve));
    const free = (closed.address() as { port: number }).port;
    await new Promise((resolve) => closed.close(resolve));
    expect(free).not.toBe(Number(port));
    expect(await send(`http://127.0.0.1:${free}/`)).toEqual(notConnected("the connection was refused"));
  });

  test("has a name that does not resolve", async () => {
    const resolve = async () => Promise.reject(new Error("ENOTFOUND"));
    expect(await send("https://hooks.example.test/", { resolve })).toEqual(
      notConnected("the name hooks.example.test does not resolve"),
    );
  });

  test("has a name whose look-up never ends", async () => {
    const resolve = () => new Promise<string[]>(() => undefined);
    expect(await send("https://hooks.example.test/", { resolve, timeoutMs: BRIEF_MS })).toEqual({
      statusCode: null,
      error: "Could not connect to the endpoint: the name hooks.example.test did not resolve in time.",
      timedOut: true,
    });
  });
});
