import { counted } from "../lib/text.ts";

const WIDTH = 24;
const REDRAW_MS = 100;
/** The time left is computed from the speed in this window: a load slows down when its saved points are spent. */
const WINDOW_MS = 60_000;

interface ProgressBar {
  /** Draws, at most every 100 ms. @param done from 0 to 1; undefined if the size is unknown, as with a pipe */
  update(done: number | undefined, text: string): void;
  /** Removes the bar. */
  end(): void;
}

/** A progress bar with the time left, drawn only on a terminal. @param clock milliseconds */
export function createProgressBar(stream: NodeJS.WriteStream, clock = () => performance.now()): ProgressBar {
  let drawnAt = Number.NEGATIVE_INFINITY;
  /** Measurements in the window, oldest first. Each new stage starts again at 0. */
  let measured: { done: number; at: number }[] = [];

  function measure(done: number | undefined, at: number): { done: number; at: number } {
    if (done === undefined || done < (measured.at(-1)?.done ?? 0)) measured = [];
    if (done !== undefined) measured.push({ done, at });
    const [first = { done: 0, at }, second] = measured;
    if (second !== undefined && at - second.at >= WINDOW_MS) measured.shift();
    return first;
  }

  return {
    update(done, text) {
      const now = clock();
      if (!stream.isTTY || now - drawnAt < REDRAW_MS) return;
      drawnAt = now;
      const from = measure(done, now);
      stream.write(`\r\x1b[K${progressLine(done, text, (now - from.at) / 1000, from.done)}`);
    },
    end() {
      if (stream.isTTY) stream.write("\r\x1b[K");
    },
  };
}

/** Formats the progress and the time left. @param elapsed seconds since `done` had the value `from` */
export function progressLine(done: number | undefined, text: string, elapsed: number, from = 0): string {
  if (done === undefined || !(done > 0)) return text;
  const part = Math.min(done, 1);
  if (part <= from) return `${bar(part)}  ${text}`;
  const left = Math.ceil((elapsed / (part - from)) * (1 - part));
  const time = left >= 60 ? `${Math.floor(left / 60)}m ${left % 60}s` : `${left}s`;
  return `${bar(part)}  ${text}, ${time} left`;
}

function bar(part: number): string {
  const filled = Math.round(part * WIDTH);
  return `${"█".repeat(filled)}${"░".repeat(WIDTH - filled)} ${Math.floor(part * 100)}%`;
}

/** @param elapsed seconds */
export function rateText(records: number, elapsed: number): string {
  const perSecond = Math.round(records / Math.max(elapsed, 0.001));
  return `${counted(records, "record", "records")}, ${perSecond.toLocaleString("en")}/s`;
}
