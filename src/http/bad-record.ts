import { SdsError } from "../domain/error.ts";
import type { Refusal } from "../domain/records/refusal.ts";
import { decodeUtf8 } from "../lib/text.ts";

/** Makes the refusal of a record. It names the record's index, counted from 0, and the field. */
export function badRecord({ index, field, reason }: Refusal & { index: number }): SdsError {
  const where = field === "" ? `Record ${index}` : `Record ${index}, field ${field}:`;
  return new SdsError("bad_record", `${where} ${reason}. Nothing of this body was kept.`);
}

/** Decodes a body. @throws SdsError `bad_record` for a body that is not UTF-8 */
export function textOf(body: Uint8Array): string {
  const text = decodeUtf8(body);
  if (text === undefined) throw new SdsError("bad_record", "The body is not UTF-8.");
  return text;
}

/** Refuses an empty body. An empty array is accepted. @throws SdsError `bad_record` */
export function requireText(text: string): void {
  if (text.trim() === "") throw new SdsError("bad_record", "The body is empty.");
}
