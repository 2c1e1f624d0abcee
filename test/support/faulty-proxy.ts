import { afterTest } from "./cleanup.ts";
import { type FaultyProxy, openFaultyProxy } from "./network-faults.ts";

/** Starts a proxy to a server on this machine. The proxy can fail like a network, and stops after the test. */
export async function startFaultyProxy(serverPort: number): Promise<FaultyProxy> {
  const proxy = await openFaultyProxy(serverPort);
  afterTest(proxy.stop);
  return proxy;
}
