import { connect, createServer, type Socket } from "node:net";
import { afterTest } from "./cleanup.ts";

/** A way to a server on this machine that can fail as networks do. */
export interface FaultyProxy {
  port: number;
  /** How many connections it has. */
  count(): number;
  /** While it is set, bytes in both directions vanish, and connections stay open. */
  isSwallowing: boolean;
  /** Lets the connections of now vanish so, and no later ones, as a router does that has forgotten them. */
  forgetConnections(): void;
  /** An answer with these bytes does not arrive: the connection is cut instead. Once; then it is undefined again. */
  cutAtAnswer: string | undefined;
  /** How many pieces of what clients sent have vanished. */
  swallowed: number;
  /** How late each answer arrives, in milliseconds. */
  delayMs: number;
}

/** Ends after the test. */
export async function startFaultyProxy(serverPort: number): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  const forgotten = new Set<Socket>();
  const listener = createServer((client) => {
    const server = connect(serverPort, "127.0.0.1");
    sockets.add(client);
    const cut = () => {
      client.destroy();
      server.destroy();
      sockets.delete(client);
    };
    for (const socket of [client, server]) socket.on("error", cut).on("close", cut);
    client.on("data", (bytes) => {
      if (proxy.isSwallowing || forgotten.has(client)) proxy.swallowed += 1;
      else server.write(bytes);
    });
    server.on("data", (bytes) => {
      if (proxy.isSwallowing || forgotten.has(client)) return;
      if (proxy.cutAtAnswer !== undefined && bytes.includes(proxy.cutAtAnswer)) {
        proxy.cutAtAnswer = undefined;
        return cut();
      }
      if (proxy.delayMs === 0) client.write(bytes);
      else setTimeout(() => client.write(bytes), proxy.delayMs);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  const proxy: FaultyProxy = {
    port: typeof address === "object" && address !== null ? address.port : 0,
    count: () => sockets.size,
    isSwallowing: false,
    forgetConnections() {
      for (const socket of sockets) forgotten.add(socket);
    },
    cutAtAnswer: undefined,
    swallowed: 0,
    delayMs: 0,
  };
  afterTest(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  return proxy;
}
