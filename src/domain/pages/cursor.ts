import { isoUtc } from "../../lib/time.ts";

/** The end of a page: the sort date (epoch milliseconds) and the id of the page's last row. */
export interface Position {
  at: number;
  id: string;
}

const CURSOR = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z)~([a-z]{3}_[a-z2-7]{24})$/;

/** Writes a cursor: `<ISO date>~<id>` (docs/api.md, "Pagination"). */
export function formatCursor(position: Position): string {
  return `${isoUtc(position.at)}~${position.id}`;
}

/**
 * Reads a cursor. Only the store knows whether the position is a row of this shop and resource.
 * @returns undefined for any text that `formatCursor` cannot write
 */
export function parseCursor(text: string): Position | undefined {
  const match = CURSOR.exec(text);
  if (match === null) return undefined;
  const [, date = "", id = ""] = match;
  const at = Date.parse(date);
  return !Number.isNaN(at) && isoUtc(at) === date ? { at, id } : undefined;
}
