import { described } from "./described.ts";

const origins = new Set<string>();

/** Checks all answers that `fetch` gets from this address from now on. */
export function checkAnswersOf(url: string): void {
  if (origins.size === 0) globalThis.fetch = checkedFetch(globalThis.fetch);
  origins.add(new URL(url).origin);
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
