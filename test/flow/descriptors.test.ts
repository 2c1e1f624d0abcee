import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { Receiver } from "../support/receiver.ts";

const DESCRIPTORS = 64;
const IDLE_CONNECTIONS = 200;
const DELIVERIES = 4;

interface Entry {
  status: string;
  attempts: number;
}

/** Returns the processor time that a process has used. */
function processorTimeMs(pid: number): number {
  const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ").slice(13, 15).map(Number);
  return (user + system) * 10;
}

/** Opens connections and sends nothing. */
async function idleConnections(url: string): Promise<Socket[]> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: IDLE_CONNECTIONS }, () => connect(Number(port), hostname));
  for (const socket of sockets) socket.on("error", () => undefined);
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
  return sockets;
}

test("clients that take all descriptors neither end the program nor stop deliveries; when they leave, it answers again", async () => {
  const program = await Program.withShop({ SDS_EGRESS_ALLOW: "127.0.0.0/8", SDS_RETRY_WAITS: "1s,1s,1s,1s" });
  const receiver = new Receiver();
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"]);
  const server = await program.serve(undefined, undefined, { descriptors: DESCRIPTORS });

  const sockets = await idleConnections(server.url);
  await eventually(() => readdirSync(`/proc/${server.pid}/fd`).length === DESCRIPTORS);
  await eventually(() => server.output.includes("all file descriptors for connections are in use"));
  const [usedMs, startedAt] = [processorTimeMs(server.pid), performance.now()];
  for (let queued = 0; queued < DELIVERIES; queued += 1) await program.json(["webhook", "test"]);
  await receiver.gets(DELIVERIES);
  const entries = () => program.json<Entry[]>(["delivery", "list"]);
  const ended = await eventually(async () => {
    const all = await entries();
    return all.every(({ status }) => status === "delivered") && all;
  });
  expect(ended.map(({ attempts }) => attempts)).toEqual(Array.from({ length: DELIVERIES }, () => 1));
  const share = (processorTimeMs(server.pid) - usedMs) / (performance.now() - startedAt);
  expect(share).toBeLessThan(0.3);

  for (const socket of sockets) socket.destroy();
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  expect(await server.stop()).toBe(0);
});
