const WIDTH = 24;
const REDRAW_EVERY = 100;

/** A bar with the time left on a terminal; silent elsewhere. */
export class Progress {
  private readonly stream: NodeJS.WriteStream;
  private readonly startedAt = performance.now();
  private drawnAt = 0;
  /** Where it began to count: a run that goes on where another was cut off begins in the middle, and a new stage at the start. */
  private from = { done: 0, at: this.startedAt };
  private last = 0;

  constructor(stream: NodeJS.WriteStream) {
    this.stream = stream;
  }

  /**
   * @param done of the whole, 0 to 1; undefined where nobody knows, as for a pipe
   * @param text what was done so far
   */
  update(done: number | undefined, text: string): void {
    const now = performance.now();
    if (!this.stream.isTTY || now - this.drawnAt < REDRAW_EVERY) return;
    this.drawnAt = now;
    if (done !== undefined && (done < this.last || this.last === 0)) this.from = { done, at: now };
    this.last = done ?? 0;
    this.stream.write(`\r\x1b[K${progressLine(done, text, (now - this.from.at) / 1000, this.from.done)}`);
  }

  end(): void {
    if (this.stream.isTTY) this.stream.write("\r\x1b[K");
  }
}

/**
 * @param elapsed seconds
 * @param from what was done when they began to count
 */
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
  return `${records.toLocaleString("en")} records, ${Math.round(records / Math.max(elapsed, 0.001)).toLocaleString("en")}/s`;
}
