/** A round robin over keys that change: the key that was served last comes last in the next round. */
export interface Rotation {
  /** @param items with ascending keys @returns the items with greater keys than the one served last, then the others */
  order<T>(items: readonly T[], keyOf: (item: T) => number): T[];
  noteServed(key: number): void;
}

/** A rotation in which nothing was served yet. Keys are numbers above 0. */
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
