/** The speed is measured over about this time, because work slows down when its saved points are spent. */
const WINDOW_MS = 60_000;

/** The finished part of some work, 0 to 1, at a time in milliseconds. */
interface PartDone {
  done: number;
  at: number;
}

/** Notes the progress of some work. */
export interface PaceMeter {
  /**
   * Notes the finished part; undefined if it is unknown. A smaller part than before means that other work has begun.
   * @returns an earlier part to compute the speed from. With frequent calls, it is about a minute old
   */
  note(done: number | undefined, at: number): PartDone;
}

export function createPace(): PaceMeter {
  /** Parts in the window, oldest first. */
  let noted: PartDone[] = [];
  return {
    note(done, at) {
      if (done === undefined || done < (noted.at(-1)?.done ?? 0)) noted = [];
      if (done !== undefined) noted.push({ done, at });
      const [first = { done: 0, at }, second] = noted;
      if (second !== undefined && at - second.at >= WINDOW_MS) noted.shift();
      return first;
    },
  };
}

/** @returns how long the rest takes at the speed since `from`, in milliseconds; undefined if the speed is unknown */
export function timeLeft(from: PartDone, { done, at }: PartDone): number | undefined {
  const part = Math.min(done, 1);
  return part > from.done ? ((at - from.at) / (part - from.done)) * (1 - part) : undefined;
}
