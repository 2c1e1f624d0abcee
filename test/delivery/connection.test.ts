import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { createServer as createTcpServer, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { openConnection, type Target } from "../../src/delivery/connection.ts";
import { codeOf } from "../../src/domain/error.ts";
import { afterTest } from "../support/cleanup.ts";

const tls = join(import.meta.dir, "../support/tls");
const AUTHORITY = await Bun.file(join(tls, "authority.pem")).text();
const REQUEST = Buffer.from("POST / HTTP/1.1\r\nHost: a\r\n\r\n");
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** Starts a server with or without TLS. It gives the received bytes to the test. @returns its port */
async function listen(serve: (socket: Socket, received: string) => void, certificate?: string): Promise<number> {
  const sockets = new Set<Socket>();
  const accept = (socket: Socket) => {
    sockets.add(socket);
    let received = "";
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      received += bytes.toString("latin1");
      serve(socket, received);
    });
  };
  const file = async (ending: string) => Bun.file(join(tls, `${certificate}.${ending}`)).text();
  const server =
    certificate === undefined
      ? createTcpServer({ allowHalfOpen: true }, accept)
      : createTlsServer({ allowHalfOpen: true, cert: await file("pem"), key: await file("key") }, accept);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.on("tlsClientError", () => undefined);
  afterTest(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as { port: number }).port;
}

function openTo(port: number, changed: Partial<Target> = {}) {
  const connection = openConnection({ address: "127.0.0.1", port, isAddress: false, ...changed });
  afterTest(() => connection.close());
  return connection;
}

const codeFrom = (promise: Promise<unknown>) =>
  promise.then(
    (value) => `no error but ${value}`,
    (thrown) => codeOf(thrown),
  );

test("a large request arrives whole, although the socket takes it in parts and its timeout ends in between", async () => {
  const length = 20_000_000;
  const port = await listen((socket, received) => {
    if (received.length === length) socket.end(OK);
  });
  let asked = 0;
  const isOver = () => {
    asked += 1;
    return asked > 1;
  };
  expect(await openTo(port).exchange(Buffer.alloc(length, "x"), isOver)).toMatchObject({ status: 200 });
});

test("bytes after the end of an answer do not count", async () => {
  const port = await listen((socket) => socket.write(`${OK}HTTP/1.1 500 No\r\n\r\n`));
  expect(await openTo(port).exchange(REQUEST)).toMatchObject({ status: 200 });
});

test.each([
  { kind: "plain", certificate: undefined },
  { kind: "TLS", certificate: "valid" },
])("no socket stays open after the answer if the other side never closes ($kind)", async ({ certificate }) => {
  const port = await listen((socket) => socket.write(OK), certificate);
  const target = certificate === undefined ? {} : { tlsHost: "hooks.example.test", authorities: AUTHORITY };
  const files = () => readdirSync("/proc/self/fd").length;
  const before = files();
  await Promise.all(Array.from({ length: 50 }, () => openTo(port, target).exchange(REQUEST)));
  // The server runs in this process too, so descriptors of its connections may still be open.
  expect(files()).toBeLessThanOrEqual(before + 55);
});

describe("TLS", () => {
  test("sends the name, but not an address", async () => {
    const names: unknown[] = [];
    const port = await listen((socket) => {
      names.push((socket as TLSSocket).servername);
      socket.end(OK);
    }, "valid");
    const secure = { tlsHost: "hooks.example.test", authorities: AUTHORITY };
    expect(await openTo(port, secure).exchange(REQUEST)).toMatchObject({ status: 200 });
    expect(names).toEqual(["hooks.example.test"]);
  });

  test.each<[string, string, Partial<Target>, string]>([
    ["for another name", "other", { tlsHost: "hooks.example.test" }, "ERR_TLS_CERT_ALTNAME_INVALID"],
    ["for no address", "valid", { tlsHost: "127.0.0.1", isAddress: true }, "ERR_TLS_CERT_ALTNAME_INVALID"],
    ["that has expired", "expired", { tlsHost: "hooks.example.test" }, "CERT_HAS_EXPIRED"],
  ])("refuses a certificate %s, and sends nothing", async (_name, certificate, target, code) => {
    let received = "";
    const port = await listen((_socket, bytes) => {
      received += bytes;
    }, certificate);
    const connection = openTo(port, { ...target, authorities: AUTHORITY });
    expect(await codeFrom(connection.exchange(REQUEST))).toBe(code);
    expect(received).toBe("");
  });

  test("refuses a certificate of an unknown authority", async () => {
    const port = await listen(() => undefined, "valid");
    const connection = openTo(port, { tlsHost: "hooks.example.test" });
    expect(await codeFrom(connection.exchange(REQUEST))).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
  });

  test.each([false, true])("sends nothing in clear text to a port without TLS (by address: %s)", async (isAddress) => {
    let received = "";
    const port = await listen((socket, bytes) => {
      received = bytes;
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    const tlsHost = isAddress ? "127.0.0.1" : "hooks.example.test";
    const connection = openTo(port, { tlsHost, isAddress });
    expect(await codeFrom(connection.exchange(REQUEST))).toBe("EPROTO");
    expect(received).not.toContain("POST");
  });
});

test("the end of a connection that never answered is an error", async () => {
  const port = await listen((socket) => socket.end());
  expect(await codeFrom(openTo(port).exchange(REQUEST))).toBe("ConnectionClosed");
});

test("a port without a listener refuses the connection", async () => {
  const connection = openTo(1);
  expect(connection.isPending).toBe(true);
  expect(await codeFrom(connection.exchange(REQUEST))).toBe("ECONNREFUSED");
  expect(connection.isPending).toBe(false);
});

test("a process without a free descriptor reports its own failure, not the endpoint's", async () => {
  const script = `
    import { openSync } from "node:fs";
    import { openConnection } from "${join(import.meta.dir, "../../src/delivery/connection.ts")}";
    try { for (;;) openSync("/dev/null", "r"); } catch {}
    await openConnection({ address: "127.0.0.1", port: 1, isAddress: true }).exchange(new Uint8Array(1)).catch((thrown) => console.log(thrown.message));
  `;
  const child = Bun.spawn(["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", process.execPath, "-e", script], {
    stderr: "inherit",
  });
  expect(await child.stdout.text()).toBe("no socket can be opened (EMFILE)\n");
  expect(await child.exited).toBe(0);
});
