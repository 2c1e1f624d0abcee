import { describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { createConnector, inOrder } from "../../src/delivery/connector.ts";
import { codeOf } from "../../src/domain/error.ts";
import { makeBlackhole, unanswered } from "../support/blackhole.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually, LIMIT_MS } from "../support/eventually.ts";

const REQUEST = Buffer.from("POST / HTTP/1.1\r\nHost: a\r\n\r\n");
const DROPS = "127.0.0.2";
const ANSWERS = "127.0.0.1";

/** Starts an endpoint on one address. It counts connections and the requests on them. */
async function endpoint(address = ANSWERS, wantedPort = 0) {
  const seen = { connections: 0, requests: 0, open: 0 };
  const server = createServer((socket) => {
    seen.connections += 1;
    seen.open += 1;
    socket.on("error", () => undefined);
    socket.on("close", () => {
      seen.open -= 1;
    });
    socket.on("data", () => {
      seen.requests += 1;
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(wantedPort, address, resolve));
  afterTest(() => void server.close());
  const { port } = server.address() as { port: number };
  return { port, seen, close: () => new Promise((resolve) => server.close(resolve)) };
}

function to(port: number, ...addresses: string[]) {
  return { host: "hooks.example.test", isAddress: false, port, addresses };
}

const never = () => AbortSignal.timeout(LIMIT_MS);

describe("if the first address drops packets", () => {
  test("the second one gets the request, once, after a quarter of a second", async () => {
    const { port, seen } = await endpoint();
    await makeBlackhole(DROPS, port);
    const connect = createConnector();
    const began = performance.now();
    const connection = await connect(to(port, DROPS, ANSWERS), never());
    expect(await connection.exchange(REQUEST)).toMatchObject({ status: 200 });
    expect(performance.now() - began).toBeGreaterThan(240);
    expect(seen.requests).toBe(1);
  });

  test("the second address is tried first from then on, without a wait", async () => {
    const { port, seen } = await endpoint();
    await makeBlackhole(DROPS, port);
    const connect = createConnector();
    (await connect(to(port, DROPS, ANSWERS), never())).close();
    await eventually(() => seen.open === 0);
    const before = seen.connections;
    let connections = 0;
    for (let n = 1; n <= 3; n += 1) {
      // A connection that tried the other address first would take a quarter of a second.
      await eventually(async () => {
        const began = performance.now();
        (await connect(to(port, DROPS, ANSWERS), never())).close();
        connections += 1;
        return performance.now() - began < 200;
      });
    }
    await eventually(() => seen.open === 0);
    expect(seen.connections - before).toBe(connections);
  });

  test("no connection is left waiting for it", async () => {
    const { port } = await endpoint();
    await makeBlackhole(DROPS, port);
    const before = await unanswered(DROPS, port);
    const connect = createConnector();
    (await connect(to(port, DROPS, ANSWERS), never())).close();
    await eventually(async () => (await unanswered(DROPS, port)) === before);
  });
});

test("if the last good address now drops packets, the other address gets the request", async () => {
  const { port } = await endpoint();
  const first = await endpoint(DROPS, port);
  const connect = createConnector();
  (await connect(to(port, DROPS, ANSWERS), never())).close();
  await eventually(() => first.seen.open === 0);
  await first.close();
  await makeBlackhole(DROPS, port);
  const connection = await connect(to(port, DROPS, ANSWERS), never());
  expect(await connection.exchange(REQUEST)).toMatchObject({ status: 200 });
});

test("if the only known address drops packets, few connections are left waiting for it", async () => {
  const { port } = await endpoint();
  await makeBlackhole(DROPS, port);
  const before = await unanswered(DROPS, port);
  const connect = createConnector();
  for (let n = 0; n < 64; n += 1) (await connect(to(port, DROPS), never())).close();
  await eventually(async () => (await unanswered(DROPS, port)) === before + 64);
  const signal = AbortSignal.timeout(50);
  const tries = Array.from({ length: 50 }, () => connect(to(port, DROPS), signal).catch((thrown) => thrown.name));
  expect(new Set(await Promise.all(tries))).toEqual(new Set(["TimeoutError"]));
  await eventually(async () => (await unanswered(DROPS, port)) === before + 64);
});

test("a connection that was closed during its handshake is not counted after the handshake", async () => {
  const { port, seen } = await endpoint();
  const connect = createConnector();
  for (let n = 0; n < 64; n += 1) (await connect(to(port, ANSWERS), never())).close();
  await eventually(() => seen.connections === 64 && seen.open === 0);
  expect(await (await connect(to(port, ANSWERS), never())).exchange(REQUEST)).toMatchObject({ status: 200 });
  // If too many connections were counted, another connection would check the address first.
  expect(seen.connections).toBe(65);
});

test("the error is that of the address that failed last", async () => {
  const { port } = await endpoint();
  const refused = createConnector()(to(port, "127.0.0.3", "127.0.0.4"), never());
  expect(await refused.catch(codeOf)).toBe("ECONNREFUSED");
});

describe("addresses are tried", () => {
  test.each<[string, string[], string | undefined, string[]]>([
    ["in the order of the look-up", ["1.1.1.1", "1.1.1.2"], undefined, ["1.1.1.1", "1.1.1.2"]],
    ["of both families in turn", ["2::1", "2::2", "1.1.1.1"], undefined, ["2::1", "1.1.1.1", "2::2"]],
    [
      "beginning with the family of the first",
      ["1.1.1.1", "1.1.1.2", "2::1"],
      undefined,
      ["1.1.1.1", "2::1", "1.1.1.2"],
    ],
    ["beginning with the good one", ["2::1", "2::2", "1.1.1.1"], "2::2", ["2::2", "2::1", "1.1.1.1"]],
    ["except one that the name has no more", ["2::1", "1.1.1.1"], "2::9", ["2::1", "1.1.1.1"]],
    ["up to four", ["2::1", "2::2", "2::3", "2::4", "1.1.1.1"], undefined, ["2::1", "1.1.1.1", "2::2", "2::3"]],
  ])("%s", (_name, addresses, known, expected) => {
    expect(inOrder(addresses, known)).toEqual(expected);
  });
});
