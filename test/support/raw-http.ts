import { connect, type Socket } from "node:net";
import { afterTest } from "./cleanup.ts";
import { described } from "./described.ts";

/**
 * Writes bytes to a socket, because client libraries would change them.
 * @param hangUp ends the sending side at once. The server may then close the connection before it sends a slow answer.
 * @returns all that the server sends until it closes the connection
 */
export function exchange(url: string, text: string, { hangUp = false } = {}): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () =>
      hangUp ? socket.end(text, "latin1") : socket.write(text, "latin1"),
    );
    socket.on("data", (chunk) => chunks.push(Buffer.from(chunk)));
    socket.on("end", () => {
      resolve(Buffer.concat(chunks).toString());
      socket.end();
    });
    socket.on("error", reject);
  });
}

/**
 * Writes all bytes before it reads the answer, as simple clients do.
 * @returns all that the server sends until it closes the connection. Rejects if the server does not read all bytes.
 */
export async function exchangeInTurn(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const { promise: written, resolve, reject } = Promise.withResolvers<void>();
  socket.on("error", reject);
  socket.write(text, "latin1", () => resolve());
  await written;
  return (await Array.fromAsync(socket)).join("");
}

/**
 * A server that answers each connection with the next text, unchanged, and then closes the connection. The server ends
 * after the test.
 */
export function startRawServer(...answers: string[]): { url: string; count: () => number } {
  let count = 0;
  const server = Bun.listen<{ isAnswered: boolean }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { isAnswered: false };
      },
      data(socket) {
        if (socket.data.isAnswered) return;
        socket.data.isAnswered = true;
        socket.end(answers[count] ?? "");
        count += 1;
      },
    },
  });
  afterTest(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, count: () => count };
}

/** Begins a POST, and sends a part of its body. @returns the open connection */
export function beginPost(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect(Number(port), hostname, () =>
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", () => resolve(socket)),
  );
  socket.on("error", reject);
  afterTest(() => void socket.destroy());
  return promise;
}

/** Sends a request line and a Host header as they are. @returns the answer */
export async function send(url: string, line: string, host = "x"): Promise<Response> {
  const answer = parse(await exchange(url, `${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`));
  const [method = "", target = ""] = line.split(" ");
  return described(method, target, answer);
}

/** Parses an answer of HTTP/1.x. Leaves out the headers Date, Content-Length and Connection. */
export function parse(text: string): Response {
  const end = text.indexOf("\r\n\r\n");
  const [first = "", ...lines] = text.slice(0, end).split("\r\n");
  const headers = lines.map(
    (each) => [each.slice(0, each.indexOf(":")), each.slice(each.indexOf(":") + 1).trim()] as [string, string],
  );
  const kept = headers.filter(([name]) => !/^(date|content-length|connection)$/i.test(name));
  return new Response(text.slice(end + 4), { status: Number(first.split(" ")[1]), headers: kept });
}
