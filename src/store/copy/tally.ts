/** A value in both engines' common form: flags are booleans, dates and counts are numbers. */
export type Value = number | string | boolean | Uint8Array | null;

/** A row's values in the order of its table's columns. */
export type Row = readonly Value[];

/** How many rows there are, and a hash of them that does not depend on their order. */
export interface Tally {
  readonly count: number;
  add(rows: readonly Row[]): void;
  /** 256 bits as hexadecimal digits. */
  hash(): string;
}

/** The hash is the sum of the rows' SHA-256: the engines read in different orders, and no row is there twice. */
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
        // With an iterator this loop would take longer than the hash.
        for (let index = 0; index < sums.length; index += 1) sums[index] = (sums[index] ?? 0) + (words[index] ?? 0);
      }
    },
    hash: () => new Uint8Array(sums.buffer).toHex(),
  };
}

/** Few rows have bytes, and making an array for each of the others would take most of the time. */
function textOf(row: Row): string {
  const isPlain = !row.some((value) => value instanceof Uint8Array);
  return JSON.stringify(isPlain ? row : row.map((value) => (value instanceof Uint8Array ? value.toHex() : value)));
}

/** Bytes of a row in memory, about. */
export function sizeOf(row: Row): number {
  return row.reduce<number>(
    (sum, value) => sum + (typeof value === "string" || value instanceof Uint8Array ? value.length : 0) + 16,
    0,
  );
}
