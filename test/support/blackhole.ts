import { afterTest } from "./cleanup.ts";
import { eventually } from "./eventually.ts";

/** A Bun process that listens and is then paused, so its connections are never accepted. */
const LISTENER = `const server = require("node:net").createServer();
server.listen({ host: process.argv[1], port: Number(process.argv[2]) }, () => console.log("listening"));`;
/** The number of the state SYN_SENT in /proc/net/tcp. */
const SYN_SENT = "02";

/** Counts the connections to an IPv4 address to which the other side has not answered yet. Needs Linux. */
export async function unanswered(address: string, port: number): Promise<number> {
  const hex = (value: number, digits: number) => value.toString(16).toUpperCase().padStart(digits, "0");
  const bytes = address.split(".").map((byte) => hex(Number(byte), 2));
  const remote = `${bytes.toReversed().join("")}:${hex(port, 4)}`;
  const lines = (await Bun.file("/proc/net/tcp").text()).split("\n");
  return lines.filter((line) => line.includes(` ${remote} ${SYN_SENT} `)).length;
}

/**
 * Makes an address of this machine drop packets, as a broken route does: connecting takes forever. The listener at the
 * address is paused, and its queue of waiting connections is full.
 */
export async function makeBlackhole(address: string, port: number): Promise<void> {
  const child = Bun.spawn([process.execPath, "-e", LISTENER, address, String(port)], { stdout: "pipe" });
  afterTest(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  const { done } = await child.stdout.getReader().read();
  if (done) throw new Error(`cannot listen on ${address}:${port}`);
  child.kill("SIGSTOP");
  let [started, connected] = [0, 0];
  while (started === connected) {
    for (let n = 0; n < 50; n += 1) connect();
    await eventually(async () => started === connected || (await unanswered(address, port)) > 0);
  }

  function connect(): void {
    started += 1;
    const connecting = Bun.connect({ hostname: address, port, socket: { data() {}, connectError() {} } });
    connecting.then(
      () => {
        connected += 1;
      },
      () => undefined,
    );
  }
}
