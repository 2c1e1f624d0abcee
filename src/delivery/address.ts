import { type EgressAllow, type Endpoint, parseEndpoint, refusedAddress } from "../domain/deliveries/endpoint.ts";
import { codeOf, invalid, SdsError } from "../domain/error.ts";
import { isShortage } from "../lib/descriptor-reserve.ts";

/** Looks up all addresses of a name. Rejects if the name has no address. */
export type Resolve = (host: string) => Promise<string[]>;

/** An endpoint with its allowed addresses. `refused`: why it is not allowed. `unresolved`: its name has no address. */
export type CheckedEndpoint =
  | { endpoint: Endpoint; addresses: string[] }
  | { refused: string }
  | { unresolved: string };

/**
 * Checks whether an endpoint is allowed (docs/webhooks.md). All addresses of its name must be allowed. Send the
 * request to one of the returned addresses, because a second look-up could return addresses that were not checked.
 * @param parse may cache its results
 * @throws SdsError `failed` if this process cannot open a socket for the look-up
 */
export async function checkEndpoint(
  text: string,
  resolve: Resolve,
  allow: EgressAllow,
  parse = parseEndpoint,
): Promise<CheckedEndpoint> {
  const parsed = parse(text, allow);
  if ("refused" in parsed) return parsed;
  const { endpoint } = parsed;
  const addresses = endpoint.isAddress ? [endpoint.host] : await lookUp(endpoint.host, resolve);
  if (addresses.length === 0) return { unresolved: `the name ${endpoint.host} does not resolve` };
  for (const address of addresses) {
    const refused = refusedAddress(address, endpoint.url.protocol, allow);
    if (refused !== undefined) return { refused };
  }
  return { endpoint, addresses };
}

/** @returns an empty list if the name has no address or the look-up fails */
async function lookUp(host: string, resolve: Resolve): Promise<string[]> {
  try {
    return await resolve(host);
  } catch (cause) {
    if (isShortage(cause)) throw new SdsError("failed", `no socket can be opened (${codeOf(cause)})`, { cause });
    return [];
  }
}

/**
 * Checks an endpoint before it is saved. A name that does not resolve is only a warning, because it can resolve later.
 * @returns a warning or undefined
 * @throws SdsError `invalid` for a URL that must not be saved; and the errors of `checkEndpoint`
 */
export async function acceptEndpoint(text: string, resolve: Resolve, allow: EgressAllow): Promise<string | undefined> {
  const checked = await checkEndpoint(text, resolve, allow);
  if ("refused" in checked) throw invalid(`this URL is not accepted: ${checked.refused}`);
  return "unresolved" in checked ? `${checked.unresolved} at present; the URL is kept` : undefined;
}
