import { expect, test } from "bun:test";
import { connect } from "node:net";
import { afterTest } from "../support/cleanup.ts";
import { Program } from "../support/program.ts";
import { exchange } from "../support/raw-http.ts";

const MAX_BYTES = 1024 * 1024;

/** Makes the head of a post to the intake. Its signature has the right form, but is wrong. */
function head(...headers: string[]): string {
  const signature = `X-Service-Signature: sha256=${"0".repeat(64)}`;
  const lines = ["POST /intake HTTP/1.1", "Host: x", "X-Service-Shop: alpha.myshopify.com", signature, ...headers];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Sends a post, and reads until the server closes the connection. @returns the statuses of all answers */
async function statuses(url: string, headers: string[], body: string): Promise<number[]> {
  const text = await exchange(url, head("Connection: close", ...headers) + body);
  return [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));
}

/** Announces a body of 1 MiB and sends no byte of the body. */
function announce(url: string): { received: string } {
  const { hostname, port } = new URL(url);
  const socket = Object.assign(connect(Number(port), hostname), { received: "" });
  afterTest(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.on("data", (chunk) => {
    socket.received += chunk.toString("latin1");
  });
  socket.write(head(`Content-Length: ${MAX_BYTES}`));
  return socket;
}

const CHUNKED = "Transfer-Encoding: chunked";

test("a body whose length is given in a hostile way is answered, and announced bytes take no room", async () => {
  const server = await new Program().serve();
  const tooLarge = " ".repeat(MAX_BYTES + 1);
  const rows: [string[], string, number[]][] = [
    [["Content-Length: 5", "Content-Length: 5"], "hello", [401]],
    [[`Content-Length: ${tooLarge.length}`, `Content-Length: ${tooLarge.length}`], tooLarge, [413]],
    [["Content-Length: 5, 5"], "hello", [400]],
    [["Content-Length: 5", "Content-Length: 6"], "hello!", [400]],
    [["Content-Length: 5", CHUNKED], "5\r\nhello\r\n0\r\n\r\n", [400]],
    [[CHUNKED, "Content-Length: 5"], "5\r\nhello\r\n0\r\n\r\n", [400]],
    [["Transfer-Encoding: identity", "Content-Length: 5"], "hello", [400]],
    [["Content-Length:   5"], "hello", [401]],
    [["Content-Length: 0005"], "hello", [401]],
    ...["+5", "-5", "0x5", "5e0", "5.0", "", "1".repeat(30), "18446744073709551621"].map(
      (length): [string[], string, number[]] => [[`Content-Length: ${length}`], "hello", [400]],
    ),
    [["Content-Length: 4294967301"], "hello", [413]],
    [["Content-Length: 999999999999999"], "hello", [413]],
    [["Content-Length: 9999999999999999"], "hello", [413]],
    ...["10000000000000005", "7fffffffffffffff", "-5", "+5", " 5", "0x5", "", "zz"].map(
      (size): [string[], string, number[]] => [[CHUNKED], `${size}\r\nhello\r\n0\r\n\r\n`, [400]],
    ),
    [[CHUNKED], `ffffffff\r\n${tooLarge}`, [413]],
    [[CHUNKED], `5;${"a".repeat(100_000)}\r\nhello\r\n0\r\n\r\n`, [413]],
  ];
  for (const [headers, body, expected] of rows) {
    const sent = [headers, body.slice(0, 20)];
    expect([sent, await statuses(server.url, headers, body)]).toEqual([sent, expected]);
  }
  // The server reserves no memory for bytes that are only announced.
  const announced = Array.from({ length: 100 }, () => announce(server.url));
  expect(await statuses(server.url, ["Content-Length: 5"], "hello")).toEqual([401]);
  expect(announced.map(({ received }) => received)).toEqual(announced.map(() => ""));
});
