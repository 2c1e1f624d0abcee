import { SdsError } from "../../domain/error.ts";
import { MAX_STRING } from "../../domain/records/record-schemas.ts";
import { isoUtc } from "../../lib/time.ts";
import { isPlatformError, needsAction } from "../api/platform-error.ts";

/** The error for data of the platform that cannot be mirrored. Reading the data again does not help. */
export function platformRecordError(message: string): SdsError {
  return new SdsError("bad_record", message);
}

/** Whether bad data of one object caused the error. Otherwise, the request or the database failed. */
export function isBadData(thrown: unknown): boolean {
  if (needsAction(thrown)) return false;
  if (thrown instanceof SdsError) return thrown.code === "bad_record";
  const isOfPart = isPlatformError(thrown, "refused") || isPlatformError(thrown, "incomplete");
  return thrown instanceof TypeError || isOfPart;
}

/** The last second whose year has four digits in ISO 8601. */
const MAX_DATE = Date.UTC(9999, 11, 31, 23, 59, 59);

/** Reads a date. @throws SdsError `bad_record` */
export function dateFrom(text: string): string {
  const ms = Date.parse(text);
  if (ms >= 0 && ms <= MAX_DATE) return isoUtc(ms);
  throw platformRecordError(`the platform sent an invalid date: ${String(text).slice(0, 40)}`);
}

/** Changes a text so that the mirror accepts its record: not too long, well-formed, without U+0000. */
export function clipText<T>(value: T): T | string {
  return typeof value === "string" ? value.replaceAll("\0", "").slice(0, MAX_STRING).toWellFormed() : value;
}
