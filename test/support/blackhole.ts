import { afterTest } from "./cleanup.ts";

/** A Bun process that listens and is then paused, so its connections are never accepted. */
const LISTENER = `const server = require("node:net").createServer();
server.listen({ host: process.argv[1], port: Number(process.argv[2]) }, () => console.log("listening"));`;
/** If the system does not connect within this time, the queue of the listener is full. */
const FULL_AFTER_MS = 150;

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
  for (let isFull = false; !isFull; ) {
    const connecting = Bun.connect({ hostname: address, port, socket: { data() {}, connectError() {} } });
    connecting.catch(() => undefined);
    isFull = await Promise.race([connecting.then(() => false), Bun.sleep(FULL_AFTER_MS).then(() => true)]);
  }
}
