import type { TSchema } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { nearest } from "../../lib/similar.ts";
import { memoize } from "../../lib/text.ts";
import { isoUtc, parseUtc } from "../../lib/time.ts";
import type { LineItem } from "../resources.ts";
import {
  type IncomingRecord,
  isText,
  LINE_FIELDS,
  type OrderRecord,
  RECORD_SCHEMAS,
  RECORD_TYPES,
  type RecordType,
  Reward,
  type RewardRecord,
  type SubscriptionFields,
  type SubscriptionRecord,
  TEXT_RULE,
} from "./record-schemas.ts";
import { refuseLargeReward, refuseLargeRow, refuseLargeText } from "./record-size.ts";
import { type Refusal, refusalOf, refuse, unknownField } from "./refusal.ts";

/** Compiles the check of a type at its first use: compiling takes milliseconds, and most commands read no record. */
const checkOf = memoize(RECORD_TYPES.length, (type: RecordType) => TypeCompiler.Compile<TSchema>(RECORD_SCHEMAS[type]));

/** Parses and checks a record's JSON text. */
export function parseRecordText(text: string): ReturnType<typeof parseRecord> {
  const tooLarge = refuseLargeText(text);
  if (tooLarge !== undefined) return tooLarge;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The message of JSON.parse quotes the text, which can hold personal data.
    return refuse("", "is not valid JSON");
  }
  return parseRecord(value);
}

/** Checks a parsed JSON value. @returns the record, or the refused field and the reason */
export function parseRecord(value: unknown): { record: IncomingRecord } | { refused: Refusal } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return refuse("", "must be a JSON object");
  const type = RECORD_TYPES.find((known) => known === (value as { type?: unknown }).type);
  if (type === undefined) return refuse("type", `must be one of ${RECORD_TYPES.join(", ")}`);
  const check = checkOf(type);
  if (!check.Check(value)) return { refused: refusalOf(check, value, LINE_FIELDS) };
  const record = value as IncomingRecord;
  switch (record.type) {
    case "subscription":
      return normalSubscription(record);
    case "order":
      return normalOrder(record);
    case "reward":
      return normalReward(record);
    default:
      return { record };
  }
}

function normalDate<T extends string | null | undefined>(date: T): T {
  return (typeof date === "string" ? isoUtc(parseUtc(date) as number) : date) as T;
}

/** Returns line items with their keys in a fixed order, because line items are compared and served as stored. */
function normalLines(lines: LineItem[]): LineItem[] {
  return lines.map(({ variantId, productId, title, quantity, unitPriceCents }) => ({
    variantId,
    productId,
    title,
    quantity,
    unitPriceCents,
  }));
}

function normalSubscription(
  record: SubscriptionRecord | (SubscriptionFields & { interval: "YEAR" }),
): { record: SubscriptionRecord } | { refused: Refusal } {
  const yearly = record.interval === "YEAR";
  const normal: SubscriptionRecord = {
    ...record,
    interval: yearly ? "MONTH" : record.interval,
    intervalCount: yearly ? record.intervalCount * 12 : record.intervalCount,
    nextBillingDate: normalDate(record.nextBillingDate),
    startedAt: normalDate(record.startedAt),
    lines: normalLines(record.lines),
    ...("cancelledAt" in record && { cancelledAt: normalDate(record.cancelledAt) }),
  };
  return refuseLargeRow(normal) ?? { record: normal };
}

function normalOrder(record: OrderRecord): { record: OrderRecord } | { refused: Refusal } {
  if ((record.source === "checkout") !== (record.cycleNumber === 0)) {
    return refuse("cycleNumber", "must be 0 for a checkout order and 1 or more for a recurring one");
  }
  if (record.subtotalCents - record.discountCents - record.creditsCents < 0) {
    return refuse("totalCents", "would be below zero: subtotalCents less discountCents less creditsCents");
  }
  const normal: OrderRecord = {
    ...record,
    billedAt: normalDate(record.billedAt),
    lines: normalLines(record.lines),
    ...("nextRetryAt" in record && { nextRetryAt: normalDate(record.nextRetryAt) }),
  };
  return refuseLargeRow(normal) ?? { record: normal };
}

const SNAKE_CASE = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const MAX_DEPTH = 8;

/** Checks the names, sizes and depth of the fields that a sender added to a reward. They are passed on unchanged. */
function normalReward(record: RewardRecord): { record: RewardRecord } | { refused: Refusal } {
  for (const [field, value] of Object.entries(record)) {
    if (Object.hasOwn(Reward.properties, field)) continue;
    if (!SNAKE_CASE.test(field)) {
      const meant = nearest(field, Object.keys(Reward.properties));
      if (meant !== undefined) return { refused: unknownField([field], meant) };
      return refuse(field.slice(0, 100), "must have a name in snake_case");
    }
    if (field === "customer_id") return refuse(field, "is set by the service: name the customer in `customer`");
    if (!canPass(value, MAX_DEPTH))
      return refuse(
        field,
        `must hold well-formed strings ${TEXT_RULE}, and exact numbers, at most ${MAX_DEPTH} levels deep`,
      );
  }
  return refuseLargeReward(record) ?? { record };
}

function canPass(value: unknown, depth: number): boolean {
  if (depth === 0) return false;
  if (typeof value === "string") return isText(value);
  if (typeof value === "number")
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every((inner) => canPass(inner, depth - 1));
  // No Object.entries here: it takes 1 µs for an empty object, and a reward can have 100,000 values.
  for (const key in value) {
    if (!isText(key) || !canPass((value as Record<string, unknown>)[key], depth - 1)) return false;
  }
  return true;
}
