/** Limits how many pieces of work run at once. First come, first served. */
export interface Slots {
  run<T>(work: () => Promise<T>): Promise<T>;
}

/** @param count how many pieces of work may run at once */
export function createSlots(count: number): Slots {
  const waiting: (() => void)[] = [];
  let free = count;

  async function take(): Promise<void> {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  }

  /** Gives the slot to the work that has waited longest. */
  function giveBack(): void {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  }

  return {
    async run(work) {
      await take();
      try {
        return await work();
      } finally {
        giveBack();
      }
    },
  };
}

/** Adds to the count of a key, and removes the key at 0. */
export function addTo(counts: Map<number, number>, key: number, difference: number): void {
  const count = (counts.get(key) ?? 0) + difference;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

/** A round robin. The key that was served last comes last in the next round. Each round can have other keys. */
export interface Rotation {
  /** @param items sorted by ascending keys @returns the items after the last served key, then the other items */
  order<T>(items: readonly T[], keyOf: (item: T) => number): T[];
  noteServed(key: number): void;
}

/** @returns a rotation that has served no key. Keys are numbers above 0 */
export function createRotation(): Rotation {
  let lastServed = 0;
  return {
    order(items, keyOf) {
      const next = items.findIndex((item) => keyOf(item) > lastServed);
      return next === -1 ? [...items] : [...items.slice(next), ...items.slice(0, next)];
    },
    noteServed(key) {
      lastServed = key;
    },
  };
}
