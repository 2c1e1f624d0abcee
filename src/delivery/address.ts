import { type EgressAllow, type Endpoint, parseEndpoint, refusedAddress } from "../domain/endpoint.ts";
import { SdsError } from "../domain/error.ts";

/** Looks a name up: all its addresses. Rejects where there are none. */
export type Resolve = (host: string) => Promise<string[]>;

/** An endpoint with the addresses that requests may go to, or why nothing may; `unresolved` where its name has no address now. */
export type CheckedEndpoint = { endpoint: Endpoint; addresses: string[] } | { refused: string } | { unresolved: string };

/**
 * The one check of where webhooks may go, at save and at every attempt (contract.md 2.13). If one of a name's addresses is refused,
 * all are. A request has to go to one of the addresses that this gave: a second look-up could give others.
 */
export async function checkEndpoint(text: string, resolve: Resolve, allow: EgressAllow): Promise<CheckedEndpoint> {
  const parsed = parseEndpoint(text, allow);
  if ("refused" in parsed) return parsed;
  const { endpoint } = parsed;
  if (endpoint.isAddress) return { endpoint, addresses: [endpoint.host] };
  const addresses = await resolve(endpoint.host).catch(() => []);
  if (addresses.length === 0) return { unresolved: `the name ${endpoint.host} does not resolve` };
  const refused = addresses.map((address) => refusedAddress(address, endpoint.url.protocol, allow)).find((reason) => reason !== undefined);
  return refused === undefined ? { endpoint, addresses } : { refused };
}

/**
 * The check at save: a refused URL is not kept, a name that does not resolve may do so later.
 * @returns a warning, or undefined where all is well
 * @throws SdsError `invalid`
 */
export async function acceptEndpoint(text: string, resolve: Resolve, allow: EgressAllow): Promise<string | undefined> {
  const checked = await checkEndpoint(text, resolve, allow);
  if ("refused" in checked) throw new SdsError("invalid", `this URL is not accepted: ${checked.refused}`);
  return "unresolved" in checked ? `${checked.unresolved} at present; the URL is kept` : undefined;
}
