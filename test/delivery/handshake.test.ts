import { describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { createConnector } from "../../src/delivery/connector.ts";
import { findUnreachable } from "../../src/delivery/handshake.ts";
import { parseNetworks } from "../../src/lib/networks.ts";
import { afterTest } from "../support/cleanup.ts";
import { freePort } from "../support/postgres-process.ts";

const TLS = join(import.meta.dir, "../support/tls");
const text = (file: string) => Bun.file(join(TLS, file)).text();
const LOOPBACK = parseNetworks("127.0.0.0/8");
const NAME = "hooks.example.test";

/** Starts a server that stores the bytes it receives. @param certificate for TLS; undefined for no TLS */
async function listen(certificate?: string): Promise<{ port: number; received: string[] }> {
  const received: string[] = [];
  const accept = (socket: Socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => received.push(bytes.toString("latin1")));
  };
  const server =
    certificate === undefined
      ? createServer(accept)
      : createTlsServer({ cert: await text(`${certificate}.pem`), key: await text(`${certificate}.key`) }, accept);
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterTest(() => server.close());
  return { port: (server.address() as { port: number }).port, received };
}

async function find(url: string, resolve = async () => ["127.0.0.1"], timeoutMs = 5_000, allow = LOOPBACK) {
  const connect = createConnector({ authorities: await text("authority.pem") });
  return findUnreachable(url, { resolve, allow, timeoutMs, connect });
}

describe("an endpoint is found unreachable", () => {
  test("not if it has a good certificate; and it gets no byte of a request", async () => {
    const { port, received } = await listen("valid");
    expect(await find(`https://${NAME}:${port}/in?token=1`)).toBeUndefined();
    expect(received).toEqual([]);
  });

  test("not if it has no TLS and is in an allowed network", async () => {
    const { port, received } = await listen();
    expect(await find(`http://${NAME}:${port}/`)).toBeUndefined();
    expect(received).toEqual([]);
  });

  test.each([
    ["expired", "the TLS certificate has expired"],
    ["other", "the TLS certificate is for another name"],
  ])("if its certificate is of the kind %s", async (certificate, reason) => {
    const { port } = await listen(certificate);
    expect(await find(`https://${NAME}:${port}/`)).toBe(reason);
  });

  test("if it refuses connections, or does not speak TLS", async () => {
    expect(await find(`https://${NAME}:${freePort()}/`)).toBe("the connection was refused");
    const { port } = await listen();
    expect(await find(`https://${NAME}:${port}/`, undefined, 200)).toBe("it did not answer within 0.2 seconds");
  });

  test("if its name does not resolve, or not in time", async () => {
    expect(await find(`https://${NAME}/`, async () => [])).toBe(`the name ${NAME} does not resolve`);
    const never = () => new Promise<string[]>(() => undefined);
    expect(await find(`https://${NAME}/`, never, 50)).toBe("it did not answer within 0.05 seconds");
  });

  test("without a connection, if its address is not public", async () => {
    const { port, received } = await listen("valid");
    expect(await find(`https://${NAME}:${port}/`, undefined, 1_000, [])).toStartWith("its address is not allowed: ");
    expect(await find(`https://127.0.0.1:${port}/`, undefined, 1_000, [])).toStartWith("its address is not allowed: ");
    expect(received).toEqual([]);
  });
});
