/** A round robin over keys that come and go: the one that was served last is at the end of the next round. */
export interface Rotation {
  /** @param items with ascending keys @returns the items with greater keys than the one served last, then the others */
  order<T>(items: readonly T[], keyOf: (item: T) => number): T[];
  served(key: number): void;
}

/** A rotation before anyone is served. Keys are numbers above 0. */
export function createRotation(): Rotation {
  let lastServed = 0;
  return {
    order(items, keyOf) {
      const next = items.findIndex((item) => keyOf(item) > lastServed);
      return next === -1 ? [...items] : [...items.slice(next), ...items.slice(0, next)];
    },
    served(key) {
      lastServed = key;
    },
  };
}
