const WIDTH = 24;
const REDRAW_EVERY = 100;

/** A bar with rate and time left on a terminal; silent elsewhere. */
export class Progress {
  private readonly total: number | undefined;
  private readonly stream: NodeJS.WriteStream;
  private readonly startedAt = performance.now();
  private drawnAt = 0;

  /** @param total bytes, or undefined where nobody knows, as for a pipe */
  constructor(total: number | undefined, stream: NodeJS.WriteStream) {
    this.total = total;
    this.stream = stream;
  }

  update(bytes: number, records: number): void {
    const now = performance.now();
    if (!this.stream.isTTY || now - this.drawnAt < REDRAW_EVERY) return;
    this.drawnAt = now;
    this.stream.write(`\r\x1b[K${progressLine(bytes, this.total, records, (now - this.startedAt) / 1000)}`);
  }

  end(): void {
    if (this.stream.isTTY) this.stream.write("\r\x1b[K");
  }
}

/** @param elapsed seconds */
export function progressLine(bytes: number, total: number | undefined, records: number, elapsed: number): string {
  const rate = `${records.toLocaleString("en")} records, ${Math.round(records / Math.max(elapsed, 0.001)).toLocaleString("en")}/s`;
  if (total === undefined || bytes === 0) return rate;
  const done = Math.min(bytes / total, 1);
  const filled = Math.round(done * WIDTH);
  const left = Math.ceil((elapsed / done) * (1 - done));
  const time = left >= 60 ? `${Math.floor(left / 60)}m ${left % 60}s` : `${left}s`;
  return `${"█".repeat(filled)}${"░".repeat(WIDTH - filled)} ${Math.floor(done * 100)}%  ${rate}, ${time} left`;
}
