/** The speed is measured over this time only, because work is fast at first and slows down later. */
const WINDOW_MS = 60_000;

/** The finished part of some work, from 0 to 1, and the time of this progress in milliseconds. */
interface PartDone {
  done: number;
  at: number;
}

/** Notes the progress of some work. */
export interface PaceMeter {
  /**
   * Notes the finished part. A smaller part than in the previous call means that different work has begun.
   * @param done the finished part; undefined if unknown
   * @returns earlier progress, from which to compute the speed. With frequent calls, it is about a minute old
   */
  note(done: number | undefined, at: number): PartDone;
}

export function createPace(): PaceMeter {
  /** The progress of about the last minute, oldest first. */
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

/**
 * @returns how many milliseconds the rest of the work takes at the average speed since `from`; undefined if the speed
 *   is unknown
 */
export function timeLeft(from: PartDone, { done, at }: PartDone): number | undefined {
  const part = Math.min(done, 1);
  return part > from.done ? ((at - from.at) / (part - from.done)) * (1 - part) : undefined;
}
