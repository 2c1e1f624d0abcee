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
  const sums = new Uint32Array(8);
  let count = 0;
  return {
    get count() {
      return count;
    },
    add(rows) {
      count += rows.length;
      for (const row of rows) {
        const text = JSON.stringify(row.map((value) => (value instanceof Uint8Array ? value.toHex() : value)));
        const { buffer, byteOffset } = new Bun.CryptoHasher("sha256").update(text).digest();
        const words = new Uint32Array(buffer, byteOffset, sums.length);
        for (const [index, word] of words.entries()) sums[index] = (sums[index] ?? 0) + word;
      }
    },
    hash: () => new Uint8Array(sums.buffer).toHex(),
  };
}

/** Bytes of a row in memory, about. */
export function sizeOf(row: Row): number {
  return row.reduce<number>(
    (sum, value) => sum + (typeof value === "string" || value instanceof Uint8Array ? value.length : 0) + 16,
    0,
  );
}
