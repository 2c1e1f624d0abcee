import { describe, expect, test } from "bun:test";
import { ApiError, ConnectionError } from "../../src/client/api-error.ts";
import { createClient } from "../../src/client/client.ts";
import { type ClientOptions, createRequester, type Fetch } from "../../src/client/requester.ts";
import { parseRetryAfter, retryWait } from "../../src/client/waits.ts";
import { FakeApi, refusal } from "../support/fake-api.ts";
import { startRawServer } from "../support/raw-http.ts";

const KEY = `cad_pk_${"0123456789ab".repeat(4)}`;

/**
 * Makes a requester with a simulated clock. Each wait ends at once, and moves the clock.
 * @param lateMs how much too late each wait ends
 */
function requesterOn(url: string, options: Partial<ClientOptions> = {}, lateMs = 0) {
  const waits: number[] = [];
  let ms = 0;
  const request = createRequester(
    { url, key: KEY, ...options },
    {
      clock: () => ms,
      random: () => 1,
      sleep: async (waitMs) => {
        waits.push(waitMs);
        ms += waitMs + lateMs;
      },
    },
  );
  return { waits, get: (signal?: AbortSignal) => request("orders", { limit: "1" }, signal) };
}

/** Makes the API give these answers first, then its usual ones. */
function answers(api: FakeApi, ...given: (() => Response)[]): void {
  api.before = () => given.shift()?.();
}

async function errorOf(work: Promise<unknown>): Promise<Error> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof Error) return thrown;
  }
  throw new Error("no error was thrown");
}

describe("a request that fails", () => {
  test.each([
    [429, "rate_limited", { "Retry-After": "7" }, 7_500],
    [500, "internal", {}, 500],
    [502, "", {}, 500],
    [503, "unavailable", { "Retry-After": "1" }, 1_500],
  ])("by %p %p is tried again after its Retry-After", async (status, code, headers, waitMs) => {
    const api = new FakeApi();
    answers(api, () => refusal(status, code, headers));
    const { get, waits } = requesterOn(api.url);
    expect((await get()).body).toEqual({ data: [], page: { limit: 0, nextCursor: null } });
    expect({ waits, requests: api.requests.length }).toEqual({ waits: [waitMs], requests: 2 });
  });

  test.each([400, 401, 403, 404, 405])("by %p is not tried again, and the error says why", async (status) => {
    const api = new FakeApi();
    answers(api, () => refusal(status, "some_code", { "X-Request-Id": "abc" }));
    const error = await errorOf(requesterOn(api.url).get());
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ status, code: "some_code", requestId: "abc", message: "It is some_code." });
    expect(api.requests).toHaveLength(1);
  });

  test("by the network is tried again: no connection, no answer, half an answer", async () => {
    const { url, count } = startRawServer(
      'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"data":[',
      "",
      "HTTP/1.1 200 OK\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]",
    );
    const { get, waits } = requesterOn(url);
    expect((await get()).body).toEqual([]);
    expect({ count: count(), waits }).toEqual({ count: 4, waits: [500, 1_000, 2_000] });
  });

  test("is tried until the deadline, and the last error is thrown", async () => {
    const api = new FakeApi();
    api.before = () => refusal(503, "unavailable");
    const told: string[] = [];
    const onRetry = (error: Error, waitMs: number) => told.push(`${error.message} ${waitMs}`);
    const { get, waits } = requesterOn(api.url, { deadlineMs: 20_000, onRetry });
    expect(await errorOf(get())).toMatchObject({ name: "ApiError", status: 503 });
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000]);
    expect(told).toEqual(waits.map((waitMs) => `It is unavailable. ${waitMs}`));
  });

  test.each([
    ["the wait would leave less than a second", 0, 16_000, 4],
    ["the wait ended late and left less than a second", 200, 17_400, 5],
  ])("is not tried again if %s, and the last error is thrown", async (_, lateMs, deadlineMs, waited) => {
    const api = new FakeApi();
    api.before = () => refusal(503, "unavailable");
    const { get, waits } = requesterOn(api.url, { deadlineMs }, lateMs);
    expect(await errorOf(get())).toMatchObject({ status: 503 });
    expect({ waits, requests: api.requests.length }).toEqual({
      waits: [500, 1_000, 2_000, 4_000, 8_000].slice(0, waited),
      requests: 5,
    });
  });

  test("is not tried again if the server asks for a longer wait than the deadline", async () => {
    const api = new FakeApi();
    api.before = () => refusal(429, "rate_limited", { "Retry-After": "3600" });
    const { get, waits } = requesterOn(api.url);
    expect(await errorOf(get())).toMatchObject({ status: 429, retryAfterMs: 3_600_000 });
    expect(waits).toEqual([]);
  });

  test("because of a wrong address or a closed connection says what to do, and not the runtime's text", async () => {
    using closing = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { open: (socket) => socket.terminate(), data: () => undefined },
    });
    const closed = await errorOf(requesterOn(`http://127.0.0.1:${closing.port}`).get());
    expect(closed.message).toEndWith(": the server closed the connection. Try again.");
    const refused = await errorOf(requesterOn("http://127.0.0.1:1").get());
    expect(refused.message).toEndWith(": nothing listens there. Start the server, or correct the address.");
  });

  test("without an answer in time fails with a timeout error", async () => {
    const api = new FakeApi();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    api.before = () => promise;
    const error = await errorOf(requesterOn(api.url, { timeoutMs: 20, deadlineMs: 400 }).get());
    resolve(undefined);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toBe(`No answer from ${api.url}: no answer within 0.02 s`);
  });
});

test("a signal ends a request that waits for its answer, with the signal's reason", async () => {
  const api = new FakeApi();
  const stop = new AbortController();
  const { promise, resolve } = Promise.withResolvers<undefined>();
  api.before = () => {
    stop.abort(new Error("enough"));
    return promise;
  };
  expect((await errorOf(requesterOn(api.url).get(stop.signal))).message).toBe("enough");
  resolve(undefined);
});

test("a signal ends the wait before the next attempt", async () => {
  const api = new FakeApi();
  const stop = new AbortController();
  api.before = () => {
    queueMicrotask(() => stop.abort(new Error("enough")));
    return refusal(429, "rate_limited", { "Retry-After": "60" });
  };
  const client = createClient({ url: api.url, key: KEY });
  expect((await errorOf(client.orders.get("ord_x", { signal: stop.signal }))).message).toBe("enough");
});

test("the client follows no redirect, which could lead the key to another host", async () => {
  const [api, other] = [new FakeApi(), new FakeApi()];
  api.before = () => Response.redirect(`${other.url}/api/v1/orders`, 308);
  const error = await errorOf(requesterOn(api.url).get());
  expect(error.message).toBe("The address redirects. Use the address that it leads to.");
  expect(other.requests).toEqual([]);
});

test("an answer from another server than sds is an error that says this", async () => {
  const api = new FakeApi();
  answers(api, () => new Response("<html>", { status: 200 }));
  const error = await errorOf(requesterOn(api.url).get());
  expect(error.message).toBe("The answer is HTTP 200 and not from sds. Is the address right?");
});

test.each([200, 503])(
  "reading stops at an answer too large for sds, and it is not requested again: %j",
  async (status) => {
    const MIB = 1024 * 1024;
    let sent = 0;
    let count = 0;
    let isCancelled = false;
    const fetch: Fetch = async () => {
      count += 1;
      const body = new ReadableStream({
        pull(controller) {
          sent += MIB;
          controller.enqueue(new Uint8Array(MIB).fill(0x20));
        },
        cancel() {
          isCancelled = true;
        },
      });
      return new Response(body, { status, headers: { "X-Request-Id": "abc" } });
    };
    const { get, waits } = requesterOn("https://sds.example.com", { fetch });
    const error = await errorOf(get());
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      status,
      requestId: "abc",
      message: "The answer is larger than 33554432 bytes, so it is not from sds. Is the address right?",
    });
    expect({ waits, count, isCancelled }).toEqual({ waits: [], count: 1, isCancelled: true });
    expect(sent).toBeLessThan(36 * MIB);
  },
);

test("an answer is read without for await, which streams in Safari do not have", async () => {
  const fetch: Fetch = async () => {
    const response = Response.json({ text: "\u00e9".repeat(100_000) });
    const { body } = response;
    if (body !== null) Object.defineProperty(body, Symbol.asyncIterator, { value: undefined });
    return Object.defineProperty(response, "body", { value: body });
  };
  expect(await requesterOn("https://sds.example.com", { fetch }).get()).toMatchObject({
    body: { text: "\u00e9".repeat(100_000) },
  });
});

test("each request has the key and asks the server to be strict", async () => {
  const api = new FakeApi();
  await requesterOn(`${api.url}/below/`).get();
  const [{ path, query, headers } = { path: "", query: {}, headers: new Headers() }] = api.requests;
  expect({ path, query }).toEqual({ path: "/below/api/v1/orders", query: { limit: "1" } });
  expect(headers.get("authorization")).toBe(`Bearer ${KEY}`);
  expect(headers.get("prefer")).toBe("handling=strict");
});

test.each([
  ["http://127.0.0.1:1", false],
  ["https://sds.example.com", undefined],
])("for %s, the proxy is %p", async (url, proxy) => {
  let asked: object = {};
  const fetch: Fetch = async (_, init) => {
    asked = init;
    return Response.json({});
  };
  await requesterOn(url, { fetch }).get();
  expect(Reflect.get(asked, "proxy")).toBe(proxy);
});

describe("wrong options are refused, and the error leaves out their text", () => {
  test.each([
    ["sds.example.com", "url must be an address"],
    ["ftp://sds.example.com", "url must be an address"],
    ["https://user:secret@sds.example.com", "without user, query and fragment"],
    ["https://sds.example.com/?key=secret", "without user, query and fragment"],
    ["https://sds.example.com/#secret", "without user, query and fragment"],
    ["http://sds.example.com", "url must be https:"],
    ["http://127.0.0.1.example.com", "url must be https:"],
    ["http://localhost.example.com", "url must be https:"],
  ])("%s", (url, message) => {
    const create = () => createRequester({ url, key: KEY });
    expect(create).toThrow(message);
    expect(create).not.toThrow("secret");
  });

  test.each([`${KEY}\n`, "", undefined, null])("a key that is %p", (key) => {
    const options = { url: "https://sds.example.com", key: key as string };
    expect(() => createRequester(options)).toThrow("key must be an API key");
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31])("a time of %p", (ms) => {
    const create = (times: object) => () => createRequester({ url: "https://sds.example.com", key: KEY, ...times });
    expect(create({ timeoutMs: ms })).toThrow("timeoutMs must be a number above zero and up to 2147483647");
    expect(create({ deadlineMs: ms })).toThrow("deadlineMs must be a number above zero and up to 2147483647");
  });

  test.each(["http://localhost:8080", "http://127.0.0.2:8080", "http://[::1]:8080"])("but %s is accepted", (url) => {
    expect(() => createRequester({ url, key: KEY })).not.toThrow();
  });

  test("but http: to another machine is accepted with allowHttp", () => {
    expect(() => createRequester({ url: "http://sds.internal", key: KEY, allowHttp: true })).not.toThrow();
  });
});

test("waits are a random part of a time that grows up to 30 seconds", () => {
  const longest = [1, 2, 3, 4, 5, 6, 7, 8].map((failures) => retryWait(failures, 0, 1));
  expect(longest).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  expect([retryWait(3, 0, 0), retryWait(3, 0, 0.5), retryWait(3, 5_000, 0)]).toEqual([0, 1_000, 5_000]);
});

test("Retry-After is a number of seconds or a date", () => {
  const now = Date.parse("2026-03-01T12:00:00.000Z");
  expect(
    ["12", "Sun, 01 Mar 2026 12:00:30 GMT", "Sun, 01 Mar 2026 11:00:00 GMT", "soon", "-1", null].map((text) =>
      parseRetryAfter(text, now),
    ),
  ).toEqual([12_000, 30_000, 0, undefined, undefined, undefined]);
});
