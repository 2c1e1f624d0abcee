import { connect, createServer, type Socket } from "node:net";

/** A proxy to a server on this machine. The proxy can fail like a network. */
export interface FaultyProxy {
  port: number;
  /** The port to which new connections go. */
  target: number;
  /** The number of connections of the proxy. */
  count(): number;
  /** While this is true, all bytes and closes are dropped in both directions, and connections stay open. */
  isSwallowing: boolean;
  /**
   * Drops everything on the connections that are open now, like a router that lost its state. Later connections work.
   */
  forgetConnections(): void;
  /** The next answer that contains this text is dropped and its connection closed. Then this is reset to undefined. */
  cutAtAnswer: string | undefined;
  /** How many packets from clients were dropped. */
  swallowed: number;
  /** How late each answer arrives, in milliseconds. */
  delayMs: number;
  /** Round trips: how often a client sent something after an answer. */
  trips: number;
  stop(): void;
}

export async function openFaultyProxy(target: number): Promise<FaultyProxy> {
  const clients = new Set<Socket>();
  const servers = new Set<Socket>();
  const forgotten = new Set<Socket>();
  const listener = createServer((client) => {
    const server = connect(proxy.target, "127.0.0.1");
    clients.add(client);
    servers.add(server);
    const isLost = () => proxy.isSwallowing || forgotten.has(client);
    const end = (own: Set<Socket>, from: Socket, to: Socket) => {
      own.delete(from);
      if (!isLost()) to.destroy();
    };
    client.on("error", () => undefined).on("close", () => end(clients, client, server));
    server.on("error", () => undefined).on("close", () => end(servers, server, client));
    let hasAnswered = true;
    client.on("data", (bytes) => {
      if (hasAnswered) proxy.trips += 1;
      hasAnswered = false;
      if (isLost()) proxy.swallowed += 1;
      else server.write(bytes);
    });
    const answer = (bytes: string | Buffer) => {
      hasAnswered = true;
      client.write(bytes);
    };
    server.on("data", (bytes) => {
      if (isLost()) return;
      if (proxy.cutAtAnswer !== undefined && bytes.includes(proxy.cutAtAnswer)) {
        proxy.cutAtAnswer = undefined;
        client.destroy();
      } else if (proxy.delayMs === 0) answer(bytes);
      else setTimeout(answer, proxy.delayMs, bytes);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  const proxy: FaultyProxy = {
    port: typeof address === "object" && address !== null ? address.port : 0,
    target,
    count: () => clients.size,
    isSwallowing: false,
    forgetConnections() {
      for (const socket of clients) forgotten.add(socket);
    },
    cutAtAnswer: undefined,
    swallowed: 0,
    delayMs: 0,
    trips: 0,
    stop() {
      listener.close();
      for (const socket of [...clients, ...servers]) socket.destroy();
    },
  };
  return proxy;
}
