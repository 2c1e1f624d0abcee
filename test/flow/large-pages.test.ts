import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { watchMainThread } from "../support/processor-time.ts";
import { Program } from "../support/program.ts";
import { line, subscription } from "../support/records.ts";

const CLIENTS = 24;
/** This page has eight mebibytes. */
const PATH = "/api/v1/subscriptions?limit=250";

async function shopWithLargeRows() {
  const program = await Program.withShop();
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "A"]);
  const lines = Array.from({ length: 200 }, () => ({ ...line, title: "x".repeat(1_000) }));
  const stdin = Array.from({ length: 40 }, (_, n) => JSON.stringify(subscription(n + 1, { lines }))).join("\n");
  await program.json(["import", "-"], { stdin });
  const server = await program.serve();
  const headers = { Authorization: `Bearer ${key}` };
  return { server, headers };
}

/** Asks for a page, and reads only the beginning of the answer. */
async function ask(
  url: string,
  { Authorization }: { Authorization: string },
): Promise<{ socket: Socket; head: string }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  afterTest(() => void socket.destroy());
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: ${Authorization}\r\n\r\n`);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.once("error", reject);
  socket.once("data", (bytes) => {
    socket.pause();
    resolve(bytes.toString("latin1", 0, 600));
  });
  return { socket, head: await promise };
}

test("clients who request large pages without reading get 503 beyond a limit, and do not delay others", async () => {
  const { server, headers } = await shopWithLargeRows();
  const whole = await (await fetch(server.url + PATH, { headers })).text();
  expect(whole.length).toBeGreaterThan(7_900_000);
  expect((JSON.parse(whole) as { page: object }).page).toMatchObject({ limit: 250 });

  const answered = Promise.all(Array.from({ length: CLIENTS }, () => ask(server.url, headers)));
  const stop = watchMainThread(server.pid, async () => {
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  });
  const clients = await answered;
  expect((await stop()).longestMs).toBeLessThan(500);

  const refused = clients.filter(({ head }) => head.startsWith("HTTP/1.1 503"));
  expect(refused.length).toBeGreaterThan(CLIENTS / 2);
  expect(refused.length).toBeLessThan(CLIENTS);
  for (const { head } of refused) {
    expect(head.toLowerCase()).toContain("\r\nretry-after: 1\r\n");
    expect(head.toLowerCase()).toContain("\r\ncache-control: no-store\r\n");
    expect(head).toContain('{"error":{"code":"unavailable","message":"Too many large pages of this shop');
  }
  // A small page is not refused.
  expect((await fetch(`${server.url}/api/v1/subscriptions?limit=1`, { headers })).status).toBe(200);
  for (const { socket } of clients) socket.destroy();
  await eventually(async () => {
    const answer = await fetch(server.url + PATH, { headers });
    return (await answer.text()) === whole;
  });
});
