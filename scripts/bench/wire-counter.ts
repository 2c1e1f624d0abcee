import { createConnection, createServer, type Socket } from "node:net";

/** The traffic from programs to a PostgreSQL server. */
export interface Said {
  statements: number;
  /** Statements share a round trip if the client sends them without waiting for an answer. */
  roundTrips: number;
}

/**
 * Starts a proxy in front of a PostgreSQL server on this machine, and counts statements and round trips. The proxy
 * delays each answer. A statement that a client sends during the delay was pipelined.
 */
export async function startWireCounter(port: number): Promise<{ port: number; said: Said; stop(): void }> {
  const said: Said = { statements: 0, roundTrips: 0 };
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = createConnection(port, "127.0.0.1");
    for (const socket of [client, server]) {
      sockets.add(socket.setNoDelay());
      socket.on("error", () => client.destroy());
      socket.on("close", () => {
        client.destroy();
        server.destroy();
      });
    }
    countWire(client, server, said);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    port: (proxy.address() as { port: number }).port,
    said,
    stop() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}

const ANSWER_PAUSE_MS = 5;
const [EXECUTE, QUERY, READY] = ["E", "Q", "Z"];

/** Forwards both directions of a connection and counts messages. See PostgreSQL, "Message Formats". */
function countWire(client: Socket, server: Socket, said: Said): void {
  let waiting = 0;
  // The first message of a client has no letter for its type, so `true` is passed.
  const sent = createReader(true, (type) => {
    if (type !== EXECUTE && type !== QUERY) return;
    said.statements += 1;
    if (waiting === 0) said.roundTrips += 1;
    waiting += 1;
  });
  const answered = createReader(false, (type) => {
    if (type === READY) waiting = 0;
  });
  client.on("data", (bytes) => {
    sent(bytes as Buffer);
    server.write(bytes);
  });
  server.on("data", (bytes) =>
    setTimeout(() => {
      answered(bytes as Buffer);
      client.write(bytes);
    }, ANSWER_PAUSE_MS),
  );
}

/**
 * Calls `onMessage` with the type of each message. A message has a letter (its type), a length in four bytes, and a
 * body. The length includes its own four bytes.
 */
function createReader(isFirstUntyped: boolean, onMessage: (type: string) => void): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0);
  let isUntyped = isFirstUntyped;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const head = isUntyped ? 0 : 1;
      if (rest.length < head + 4) return;
      const end = head + rest.readUInt32BE(head);
      if (rest.length < end) return;
      if (!isUntyped) onMessage(rest.toString("latin1", 0, 1));
      isUntyped = false;
      rest = rest.subarray(end);
    }
  };
}
