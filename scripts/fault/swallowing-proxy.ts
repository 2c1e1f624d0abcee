import { connect, createServer, type Socket } from "node:net";

/** A way to a server that can be cut. */
export interface SwallowingProxy {
  port: number;
  /** The port of this machine to which new connections go. */
  target: number;
  /** While true, it takes everything and passes nothing on, as a network that drops packets. */
  isSwallowing: boolean;
  stop(): void;
}

/** Passes connections on to a port of this machine. */
export async function startSwallowingProxy(target: number): Promise<SwallowingProxy> {
  const sockets = new Set<Socket>();
  const proxy: SwallowingProxy = {
    port: 0,
    target,
    isSwallowing: false,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };

  function pass(from: Socket, to: Socket): void {
    from.on("data", (bytes) => {
      if (!proxy.isSwallowing) to.write(bytes);
    });
    // An end is a packet too.
    from.on("close", () => {
      sockets.delete(from);
      if (!proxy.isSwallowing) to.destroy();
    });
    from.on("error", () => undefined);
  }

  const server = createServer((client) => {
    sockets.add(client);
    if (proxy.isSwallowing) {
      client.on("error", () => undefined);
      return;
    }
    const upstream = connect(proxy.target, "127.0.0.1");
    sockets.add(upstream);
    pass(client, upstream);
    pass(upstream, client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address !== null && typeof address === "object") proxy.port = address.port;
  return proxy;
}
