import type { Row } from "./rows.ts";

type SortValue = (row: Row) => number | string;

/** The value by which a row is sorted, for each sort key of the schema. */
export const SORT_VALUES: Record<string, SortValue> = {
  ID: ({ n }) => n,
  CREATED_AT: ({ createdAt }) => createdAt,
  UPDATED_AT: (row) => ("updatedAt" in row ? row.updatedAt : row.createdAt),
  PROCESSED_AT: (row) => (row.kind === "order" ? row.processedAt : row.createdAt),
  STATUS: (row) => (row.kind === "contract" ? row.status : ""),
};

/** The value by which a row is sorted. */
export function sortValue(row: Row, sortKey: string): number | string {
  return SORT_VALUES[sortKey]?.(row) ?? "";
}

export interface Position {
  value: number | string;
  n: number;
}

/** Rows sorted by one value, then by id. A position stays valid when other rows are added. */
export class SortedRows<R extends Row> {
  readonly rows: R[];
  private readonly readValue: SortValue;

  constructor(rows: R[], readValue: SortValue) {
    this.readValue = readValue;
    this.rows = rows.sort((a, b) => this.compare(a, this.positionOf(b)));
  }

  positionOf(row: R): Position {
    return { value: this.readValue(row), n: row.n };
  }

  private compare(row: R, { value, n }: Position): number {
    const own = this.readValue(row);
    if (own === value) return row.n - n;
    return own < value ? -1 : 1;
  }

  /** The number of rows before a position. With `inclusive`, also counts a row at the position. */
  countBefore(position: Position, inclusive = false): number {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.compare(this.rows[middle] as R, position);
      if (order < 0 || (inclusive && order === 0)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  add(row: R): void {
    const at = this.countBefore(this.positionOf(row));
    if (at === this.rows.length) this.rows.push(row);
    else this.rows.splice(at, 0, row);
  }

  /** Must be called before the value of the row changes. */
  remove(row: R): void {
    const at = this.countBefore(this.positionOf(row));
    if (this.rows[at] === row) this.rows.splice(at, 1);
  }
}
