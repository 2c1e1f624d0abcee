import { afterTest } from "./cleanup.ts";
import { type FaultyProxy, openFaultyProxy } from "./network-faults.ts";

/** A way to a server on this machine that can fail as networks do. Ends after the test. */
export async function startFaultyProxy(serverPort: number): Promise<FaultyProxy> {
  const proxy = await openFaultyProxy(serverPort);
  afterTest(proxy.stop);
  return proxy;
}
