import { createPace, timeLeft } from "../lib/pace.ts";
import { counted } from "../lib/text.ts";

const WIDTH = 24;
const REDRAW_MS = 100;

interface ProgressBar {
  /** Draws the bar, at most every 100 ms. @param done from 0 to 1; undefined if the size is unknown, as with a pipe */
  update(done: number | undefined, text: string): void;
  /** Removes the bar. */
  end(): void;
}

/** Creates a progress bar with the time left. It is drawn only on a terminal. @param clock milliseconds */
export function createProgressBar(stream: NodeJS.WriteStream, clock = () => performance.now()): ProgressBar {
  let drawnAt = Number.NEGATIVE_INFINITY;
  const pace = createPace();

  return {
    update(done, text) {
      const now = clock();
      if (!stream.isTTY || now - drawnAt < REDRAW_MS) return;
      drawnAt = now;
      const from = pace.note(done, now);
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
  const leftMs = timeLeft({ done: from, at: 0 }, { done: part, at: elapsed * 1_000 });
  if (leftMs === undefined) return `${bar(part)}  ${text}`;
  const left = Math.ceil(leftMs / 1_000);
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
