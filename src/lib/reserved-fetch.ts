import type { DescriptorReserve } from "./descriptor-reserve.ts";

/** Together about a second. The other requests of this process end meanwhile, and their descriptors are free again. */
const MAX_TRIES = 20;
const PAUSE_MS = 50;

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
      await Bun.sleep(PAUSE_MS);
    }
  }
  return Object.assign(reserved, { preconnect: fetch.preconnect });
}

/** Whether something failed because the process, or the machine, has no free descriptor. */
export function isShortage(thrown: unknown): boolean {
  const { code } = Object(thrown) as { code?: unknown };
  return code === "EMFILE" || code === "ENFILE";
}
