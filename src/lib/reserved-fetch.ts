import type { DescriptorReserve } from "./descriptor-reserve.ts";

const MAX_TRIES = 3;

/**
 * A fetch that finds a descriptor free. It tries again only if no socket could be opened, so nothing is sent twice.
 */
export function reservedFetch(reserve: DescriptorReserve, fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  async function reserved(...args: Parameters<typeof globalThis.fetch>): Promise<Response> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await reserve.withSpareForThread(() => fetch(...args));
      } catch (thrown) {
        if (tries === MAX_TRIES || !isShortage(thrown)) throw thrown;
      } finally {
        reserve.refill();
      }
    }
  }
  return Object.assign(reserved, { preconnect: fetch.preconnect });
}

/** Whether something failed because the process, or the machine, has no free descriptor. */
export function isShortage(thrown: unknown): boolean {
  const { code } = Object(thrown) as { code?: unknown };
  return code === "EMFILE" || code === "ENFILE";
}
