import { describe, expect, test } from "bun:test";
import type { Resolve } from "../../src/delivery/address.ts";
import { createWebhookAttempt } from "../../src/delivery/attempt.ts";
import { type Connect, createConnector, type Destination } from "../../src/delivery/connector.ts";
import { afterTest } from "../support/cleanup.ts";
import { LIMIT_MS } from "../support/eventually.ts";
import { HEADERS, httpServer, LOOPBACK, notConnected, rawServer, SUCCESS, send } from "./attempting.ts";

/** Sends to a server with a certificate. The client trusts the certificate's authority. */
const sendTo = (certificate: string) =>
  send(
    httpServer(() => new Response(), certificate),
    { trusting: true },
  );

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
    const attempt = createWebhookAttempt({ resolve, allow: LOOPBACK, timeoutMs: LIMIT_MS }, createConnector());
    const request = { url: named, headers: HEADERS, body: Buffer.from("{}") };
    expect(await attempt(request)).toMatchObject(SUCCESS);
    expect(await attempt(request)).toEqual(refused("only https:// URLs are accepted"));
  });

  test("if one of several addresses is refused, all are refused", async () => {
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
    expect(await send(named, { resolve })).toMatchObject(SUCCESS);
    expect(looked).toBe(1);
    expect(host as string | null).toBe(new URL(named).host);
  });

  test("if the first address of a name cannot be reached, the next one is tried", async () => {
    const url = httpServer(() => new Response());
    const named = url.replace("127.0.0.1", "hooks.example.test");
    expect(await send(named, { resolve: async () => ["127.0.0.9", "127.0.0.1"] })).toMatchObject(SUCCESS);
  });

  test("at most four addresses of a name are tried", async () => {
    const url = httpServer(() => new Response());
    const named = url.replace("127.0.0.1", "hooks.example.test");
    const unreachable = ["127.0.0.6", "127.0.0.7", "127.0.0.8", "127.0.0.9"];
    expect(await send(named, { resolve: async () => [...unreachable.slice(1), "127.0.0.1"] })).toMatchObject({
      statusCode: 200,
    });
    expect(await send(named, { resolve: async () => [...unreachable, "127.0.0.1"] })).toMatchObject({
      statusCode: null,
      error: "Could not connect to the endpoint: the connection was refused.",
      timedOut: false,
    });
  });

  test("a request that may have been sent is not sent to another address", async () => {
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
    const settings = { resolve: async () => [address], allow: LOOPBACK, timeoutMs: LIMIT_MS };
    await createWebhookAttempt(settings, connect)({ url, headers: HEADERS, body: Buffer.from("{}") });
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
    expect(await send(httpServer(() => new Response()))).toMatchObject(SUCCESS);
    expect(await sendTo("valid")).toMatchObject(SUCCESS);
    expect(proxied).toBe(false);
  });
});

describe("TLS", () => {
  test("a certificate for the name is accepted, although the connection goes to an address", async () => {
    expect(await sendTo("valid")).toMatchObject(SUCCESS);
  });

  test("a certificate for another name is refused", async () => {
    expect(await sendTo("other")).toEqual(notConnected("the TLS certificate is for another name"));
  });

  test("an expired certificate is refused", async () => {
    expect(await sendTo("expired")).toEqual(notConnected("the TLS certificate has expired"));
  });

  test("a certificate of an unknown authority is refused", async () => {
    expect(await send(httpServer(() => new Response(), "valid"))).toEqual(
      notConnected("the TLS certificate is from an unknown authority, or its chain is incomplete"),
    );
  });

  test("an endpoint without TLS is a failed connection", async () => {
    const url = await rawServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const { error } = await send(url.replace("http:", "https:"));
    expect(error).toMatch(/^Could not connect to the endpoint: /);
  });
});
