import { afterTest } from "./cleanup.ts";
import { described } from "./described.ts";

const origins = new Set<string>();
let checking: typeof fetch | undefined;

/**
 * Checks all answers that `fetch` gets from this address. Stops after the test, because another server may get the
 * port.
 */
export function checkAnswersOf(url: string): void {
  globalThis.fetch = checking ??= checkedFetch(globalThis.fetch);
  const { origin } = new URL(url);
  origins.add(origin);
  afterTest(() => origins.delete(origin));
}

function checkedFetch(unchecked: typeof fetch): typeof fetch {
  const checked = async (...[input, init]: Parameters<typeof fetch>) => {
    const response = await unchecked(input, init);
    const { url, method } = input instanceof Request ? input : { url: String(input), method: init?.method ?? "GET" };
    const isOurs = origins.has(new URL(url).origin) && !response.redirected;
    return isOurs ? described(method, url, response) : response;
  };
  return Object.assign(checked, { preconnect: unchecked.preconnect });
}
