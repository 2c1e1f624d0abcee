import { closeSync, existsSync, openSync } from "node:fs";

/** With so many free descriptors, nothing needs the reserve before the next look. */
const MANY = 8_192;
const LOOK_INTERVAL_MS = 250;
/** How long another thread may take to open what it was asked to open. */
const THREAD_WAIT_MS = 5;
/** Together about a second. The other requests of this process end meanwhile, and their descriptors are free again. */
const MAX_TRIES = 20;
const PAUSE_MS = 50;

export interface DescriptorReserve {
  /** How many descriptors it holds when it is full. */
  readonly size: number;
  /** Takes the descriptors, and looks from now on whether others are free. */
  start(): void;
  /**
   * Runs `open`, which opens sockets or files before it returns, with descriptors of the reserve free for it. Nothing
   * else can take them: connections are accepted in another round of the event loop.
   * @param count the most descriptors that `open` opens
   * @throws Error with the code EMFILE if fewer than `count` are left
   */
  withSpare<T>(open: () => T, count?: number): T;
  /**
   * The same for one descriptor that another thread opens soon. If others are short, this waits for it, for
   * milliseconds at most, and blocks the event loop.
   */
  lendToThread<T>(open: () => T): T;
  /**
   * Takes back what was lent and is free again. Call it right after closing what `withSpare` opened, or a new
   * connection takes the descriptor.
   */
  refill(): void;
  /** Gives all of them back. */
  stop(): void;
}

interface Settings {
  /** How many descriptors to hold. It holds no more than a quarter of the limit. */
  wanted: number;
  /** Called in each look that finds all other descriptors in use. It may close some. */
  onShortage: () => void;
  /** The most descriptors that this process may have; null if nobody knows. */
  limit?: number | null;
}

/**
 * Holds descriptors open, so that clients who only connect cannot take the last ones. Without one, Bun reports a
 * refused connection where it could not open a socket, and some of its own parts end the process.
 */
export function createDescriptorReserve({
  wanted,
  onShortage,
  limit = descriptorLimit(),
}: Settings): DescriptorReserve {
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

  /** Every number below a new descriptor is in use, so the number tells how many are. */
  function look(): void {
    refill();
    const descriptor = openNull();
    hasMany = descriptor !== undefined && limit !== null && limit - descriptor > MANY;
    if (descriptor !== undefined) closeSync(descriptor);
    else onShortage();
    refill();
  }

  return {
    size,
    start() {
      started = true;
      look();
      timer = setInterval(look, LOOK_INTERVAL_MS);
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
      const other = openNull();
      if (other !== undefined) closeSync(other);
      const lent = other === undefined ? held.pop() : undefined;
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

/** @returns undefined if no descriptor is free */
function openNull(): number | undefined {
  try {
    return openSync("/dev/null", "r");
  } catch {
    return undefined;
  }
}

/** Waits until another thread has the only free descriptor, as far as this system tells. */
function waitUntilOpen(descriptor: number): void {
  const deadline = performance.now() + THREAD_WAIT_MS;
  while (!existsSync(`/proc/self/fd/${descriptor}`) && performance.now() < deadline);
}

interface Report {
  userLimits?: { open_files?: { soft?: number | string } };
}

/**
 * The most descriptors that this process may have. Bun raises the soft limit to the hard one when it starts. /proc is
 * only on Linux, so this asks Bun's report.
 * @returns null if nobody knows
 */
export function descriptorLimit(): number | null {
  const { soft } = (process.report.getReport() as Report).userLimits?.open_files ?? {};
  if (soft === "unlimited") return Number.POSITIVE_INFINITY;
  return typeof soft === "number" ? soft : null;
}

/**
 * A fetch that finds a descriptor free. It tries again only if no socket could be opened, so nothing is sent twice.
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

/** Whether something failed because the process, or the machine, has no free descriptor. */
export function isShortage(thrown: unknown): boolean {
  const { code } = Object(thrown) as { code?: unknown };
  return code === "EMFILE" || code === "ENFILE";
}
