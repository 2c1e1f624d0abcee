/** Lets only so many pieces of work run at once. The others wait, in the order of their calls. */
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

  /** Gives the slot to whoever has waited for the longest. */
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
