/** Why an address is refused: its form, or plain `http:` to another machine. */
export type AddressProblem = "form" | "http";

/**
 * Reads a server's address.
 * @param allowHttp whether to accept `http:` to other machines. Everybody on the way can then read the key
 */
export function readAddress(text: string, allowHttp: boolean): URL | AddressProblem {
  const url = parseUrl(text);
  if (url === undefined || !["https:", "http:"].includes(url.protocol)) return "form";
  if (url.username + url.password + url.search + url.hash !== "") return "form";
  return url.protocol === "https:" || allowHttp || isLoopback(url.hostname) ? url : "http";
}

/** Whether the host of a URL is this machine. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}
