import { closeSync, existsSync, openSync } from "node:fs";

/** If more descriptors than this are free, the reserve is not needed before the next check. */
const MANY = 8_192;
const CHECK_INTERVAL_MS = 250;
/** How long each round of the event loop waits during a shortage. */
const BRAKE_MS = 2;
/** How long another thread may take to open the descriptor that was lent to it. */
const THREAD_WAIT_MS = 5;
/** Maximum number of tries of one fetch. Between the tries, other requests end and free descriptors. */
const MAX_TRIES = 20;
const PAUSE_MS = 50;

export interface DescriptorReserve {
  /** How many descriptors the full reserve holds. */
  readonly size: number;
  /** Fills the reserve. From now on, checks regularly whether other descriptors are free. */
  start(): void;
  /**
   * Frees descriptors of the reserve for `open`, which opens sockets or files before it returns. No client can take
   * these descriptors, because clients are accepted only in a later round of the event loop.
   * @param count maximum number of descriptors that `open` opens
   * @throws Error with the code EMFILE if the reserve holds fewer descriptors than `count`
   */
  withSpare<T>(open: () => T, count?: number): T;
  /**
   * Like `withSpare`, for one descriptor that another thread opens soon. If no other descriptor is free, the event loop
   * is blocked until the thread has opened its descriptor. This takes at most THREAD_WAIT_MS.
   */
  lendToThread<T>(open: () => T): T;
  /** Fills the reserve. Call this right after closing what `withSpare` opened, before a client takes the descriptor. */
  refill(): void;
  /** Gives all descriptors back. */
  stop(): void;
}

interface ReserveSettings {
  /** How many descriptors to hold. A quarter of `limit` is the maximum. */
  wanted: number;
  /** Called whenever a check finds all other descriptors in use. The callback may close some descriptors. */
  onShortage: () => void;
  /** Maximum number of descriptors of this process; null if unknown. */
  limit?: number | null;
}

/**
 * Holds file descriptors open, so that connecting clients cannot take the last descriptors. Without a free descriptor,
 * Bun reports a refused connection, and some parts of Bun end the process.
 */
export function createDescriptorReserve({
  wanted,
  onShortage,
  limit = descriptorLimit(),
}: ReserveSettings): DescriptorReserve {
  const size = limit === null ? wanted : Math.min(wanted, Math.floor(limit / 4));
  const held: number[] = [];
  let started = false;
  let hasMany = false;
  let timer: Timer | undefined;

  function refill(): void {
    while (started && held.length < size) {
      const descriptor = openNull();
      if (descriptor === undefined) return;
      held.push(descriptor);
    }
  }

  /** Checks how many descriptors are free. A new descriptor gets the lowest free number, so all lower ones are used. */
  function check(): void {
    refill();
    const descriptor = openNull();
    hasMany = descriptor !== undefined && limit !== null && limit - descriptor > MANY;
    if (descriptor !== undefined) closeSync(descriptor);
    else onShortage();
    refill();
    if (descriptor === undefined) brakeUntil(performance.now() + CHECK_INTERVAL_MS);
  }

  return {
    size,
    start() {
      started = true;
      check();
      timer = setInterval(check, CHECK_INTERVAL_MS);
      timer.unref();
    },
    withSpare(open, count = 1) {
      if (!started || hasMany) return open();
      refill();
      if (held.length < count) throw Object.assign(new Error("no file descriptor is left"), { code: "EMFILE" });
      for (const descriptor of held.splice(-count)) closeSync(descriptor);
      try {
        return open();
      } finally {
        refill();
      }
    },
    lendToThread(open) {
      if (!started || hasMany) return open();
      refill();
      const lent = isDescriptorFree() ? undefined : held.pop();
      if (lent === undefined) return open();
      closeSync(lent);
      try {
        return open();
      } finally {
        waitUntilOpen(lent);
        refill();
      }
    },
    refill,
    stop() {
      started = false;
      clearInterval(timer);
      for (const descriptor of held.splice(0)) closeSync(descriptor);
    },
  };
}

/**
 * Slows the event loop down. Without a free descriptor, Bun cannot accept a waiting client, and tries again in each
 * round of the loop. Without a pause these rounds would use a whole core.
 */
function brakeUntil(end: number): void {
  if (performance.now() > end) return;
  Bun.sleepSync(BRAKE_MS);
  setImmediate(brakeUntil, end);
}

function isDescriptorFree(): boolean {
  const descriptor = openNull();
  if (descriptor !== undefined) closeSync(descriptor);
  return descriptor !== undefined;
}

/** Opens /dev/null. @returns undefined if no descriptor is free */
function openNull(): number | undefined {
  try {
    return openSync("/dev/null", "r");
  } catch {
    return undefined;
  }
}

/** Waits until another thread has opened the only free descriptor. Needs /proc, which Linux has. */
function waitUntilOpen(descriptor: number): void {
  const deadline = performance.now() + THREAD_WAIT_MS;
  while (!existsSync(`/proc/self/fd/${descriptor}`) && performance.now() < deadline);
}

/**
 * Returns the maximum number of descriptors of this process. Bun raised the soft limit to the hard limit at its start.
 * @returns null if Bun's report does not contain the limit
 */
export function descriptorLimit(): number | null {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const { soft } = report.userLimits?.open_files ?? {};
  if (soft === "unlimited") return Number.POSITIVE_INFINITY;
  return typeof soft === "number" ? soft : null;
}

/**
 * Returns a `fetch` that uses a descriptor of the reserve. It retries only if no socket was opened, so no request is
 * sent twice.
 */
export function reservedFetch(reserve: DescriptorReserve, fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  async function reserved(...args: Parameters<typeof globalThis.fetch>): Promise<Response> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await reserve.lendToThread(() => fetch(...args));
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

/** Whether the error says that the process, or the machine, has no free descriptor. */
export function isShortage(thrown: unknown): boolean {
  const { code } = Object(thrown) as { code?: unknown };
  return code === "EMFILE" || code === "ENFILE";
}
