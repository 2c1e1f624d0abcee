import { nextTurn } from "./next-turn.ts";

/** Long work that lets other work run in between. */
export interface Slices {
  /**
   * Resolves in a later turn of the event loop. Only one caller of all goes on in each turn, in the order of their
   * calls, so that many pieces of long work together take no more of a turn than one.
   */
  next(): Promise<void>;
  /** Work that calls `pause` often and waits only when its slice is used up. */
  begin(): Promise<Slice>;
}

interface Slice {
  /** undefined while there is time left in this slice; else resolves when the next one begins. */
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
