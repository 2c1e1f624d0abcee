/** Resolves in the next turn of the event loop: other work runs before. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Long work that lets other work run in between. */
export interface Slices {
  /**
   * Resolves in a later turn of the event loop, for one caller in each turn, first come, first served. So many pieces
   * of long work together take no more of a turn than one.
   */
  next(): Promise<void>;
  /** For work that calls `pause` often and waits only when its slice is used up. */
  begin(): Promise<Slice>;
}

interface Slice {
  /** @returns undefined while time is left in this slice; else a promise of the next slice */
  pause(): Promise<void> | undefined;
}

/** @param sliceMs how long the work of one turn may take */
export function createSlices(sliceMs = 5): Slices {
  let last = Promise.resolve();

  function next(): Promise<void> {
    last = last.then(nextTurn);
    return last;
  }

  return {
    next,
    async begin() {
      await next();
      let began = performance.now();
      return {
        pause() {
          if (performance.now() - began < sliceMs) return undefined;
          return next().then(() => {
            began = performance.now();
          });
        },
      };
    },
  };
}
