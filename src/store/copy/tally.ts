/** A value in both engines' common form: flags are booleans, dates and counts are numbers. */
export type Value = number | string | boolean | Uint8Array | null;

/** A row's values in the order of its table's columns. */
export type CopiedRow = readonly Value[];

/** Counts rows, and hashes them in any order. */
export interface Tally {
  readonly count: number;
  add(rows: readonly CopiedRow[]): void;
  /** Returns the hash of all rows: 256 bits in hexadecimal. */
  hash(): string;
}

/** The hash is the sum of the rows' SHA-256 hashes, so the order of the rows does not matter. No row occurs twice. */
export function createTally(): Tally {
  const digest = new Uint8Array(32);
  const words = new Uint32Array(digest.buffer);
  const sums = new Uint32Array(words.length);
  let count = 0;
  return {
    get count() {
      return count;
    },
    add(rows) {
      count += rows.length;
      for (const row of rows) {
        Bun.SHA256.hash(textOf(row), digest);
        // An iterator here would take longer than the hash itself.
        for (let index = 0; index < sums.length; index += 1) sums[index] = (sums[index] ?? 0) + (words[index] ?? 0);
      }
    },
    hash: () => new Uint8Array(sums.buffer).toHex(),
  };
}

/** Returns the text to hash. Only rows with bytes are converted, because converting all rows takes much longer. */
function textOf(row: CopiedRow): string {
  const isPlain = !row.some((value) => value instanceof Uint8Array);
  return JSON.stringify(isPlain ? row : row.map((value) => (value instanceof Uint8Array ? value.toHex() : value)));
}

/** Returns the approximate bytes of a row in memory. */
export function sizeOf(row: CopiedRow): number {
  return row.reduce<number>(
    (sum, value) => sum + (typeof value === "string" || value instanceof Uint8Array ? value.length : 0) + 16,
    0,
  );
}
