import type { EgressAllow } from "../domain/deliveries/endpoint.ts";
import { connectReason } from "../lib/networks.ts";
import { createTimeLimit, untilAborted } from "../lib/waits.ts";
import { checkEndpoint, type Resolve } from "./address.ts";
import type { Connect } from "./connector.ts";

interface HandshakeSettings {
  resolve: Resolve;
  allow: EgressAllow;
  timeoutMs: number;
  connect: Connect;
}

/**
 * Checks whether an endpoint can be reached. Looks up its name, checks its addresses, connects and does the TLS
 * handshake, as an attempt does. Sends no request.
 * @returns why the endpoint cannot be reached; undefined if it can be reached
 */
export async function findUnreachable(
  url: string,
  { resolve, allow, timeoutMs, connect }: HandshakeSettings,
): Promise<string | undefined> {
  const { signal } = createTimeLimit(timeoutMs);
  let isConnected = false;
  try {
    const checked = await untilAborted(checkEndpoint(url, resolve, allow), signal);
    if ("refused" in checked) return `its address is not allowed: ${checked.refused}`;
    if ("unresolved" in checked) return checked.unresolved;
    const { host, isAddress, port, url: parsed } = checked.endpoint;
    const tls = parsed.protocol === "https:" ? { tlsHost: host } : {};
    const connection = await connect({ host, isAddress, port, addresses: checked.addresses, ...tls }, signal);
    // The connection calls this before it sends the first byte of a request. If this returns true, nothing is sent.
    const cancel = () => {
      isConnected = true;
      return true;
    };
    await untilAborted(connection.exchange(Buffer.from("\n"), cancel), signal).finally(() => connection.close());
  } catch (thrown) {
    if (isConnected) return undefined;
    return signal.aborted ? `it did not answer within ${timeoutMs / 1_000} seconds` : connectReason(thrown);
  }
  return undefined;
}
