import { FormatRegistry, type Static, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { ValueErrorType } from "@sinclair/typebox/errors";
import { distance } from "fastest-levenshtein";
import { isoUtc, parseUtc } from "../lib/time.ts";
import { type LineItem, ORDER_SOURCES, ORDER_STATUSES, oneOf, SUBSCRIPTION_STATUSES } from "./resources.ts";

/** Why a record is refused: the field, as a path from the top of the record, and what it must be. */
export interface Refusal {
  field: string;
  reason: string;
}

/** Characters in a string, and lines in a record (docs/records.md, "Limits"). */
export const MAX_STRING = 1024;
export const MAX_LINES = 250;
const MAX_INTERVAL_COUNT = 100_000;

FormatRegistry.Set("text", isText);
FormatRegistry.Set("utc-date", (text) => parseUtc(text) !== undefined);

/** Characters are code points; half of one cannot be stored. PostgreSQL cannot store U+0000. */
function isText(text: string): boolean {
  const isShort = text.length <= MAX_STRING || (text.length <= 2 * MAX_STRING && [...text].length <= MAX_STRING);
  return isShort && text.isWellFormed() && !text.includes("\0");
}

const TEXT_RULE = `of at most ${MAX_STRING} characters, without U+0000`;
const text = Type.String({ format: "text", must: `must be a string ${TEXT_RULE}` });
const date = Type.String({ format: "utc-date", must: "must be an ISO 8601 date in UTC, like 2026-01-31T09:30:00.000Z" });
const flag = Type.Boolean({ must: "must be true or false" });
const cents = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, must: "must be a whole amount in minor units, 0 or more and a safe integer" });
const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, must: "must be a whole number, 0 or more" });

function gid(object: string) {
  const pattern = `^gid://shopify/${object}/[1-9][0-9]{0,19}$`;
  return Type.String({ pattern, must: `must be a gid like gid://shopify/${object}/123` });
}

function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()], { must: `${schema["must"]}, or null` });
}

function optional<T extends TSchema>(schema: T) {
  return Type.Optional(nullable(schema));
}

function positive(maximum: number) {
  return Type.Integer({ minimum: 1, maximum, must: `must be a whole number from 1 to ${maximum}` });
}

function record<T extends string, P extends TProperties>(type: T, fields: P, additionalProperties: TSchema | false = false) {
  return Type.Object({ type: Type.Literal(type), ...fields }, { additionalProperties });
}

const lines = Type.Array(
  Type.Object(
    {
      variantId: gid("ProductVariant"),
      productId: gid("Product"),
      title: text,
      quantity: positive(Number.MAX_SAFE_INTEGER),
      unitPriceCents: cents,
    },
    { additionalProperties: false, must: "must be a line item" },
  ),
  { maxItems: MAX_LINES, must: `must be an array of at most ${MAX_LINES} line items` },
);

const Customer = record("customer", {
  shopifyId: gid("Customer"),
  email: optional(text),
  firstName: optional(text),
  lastName: optional(text),
  marketingConsent: optional(flag),
  creditsCents: optional(cents),
  loyaltyTier: optional(count),
});

const Subscription = record("subscription", {
  shopifyId: gid("SubscriptionContract"),
  customer: gid("Customer"),
  status: oneOf(SUBSCRIPTION_STATUSES),
  interval: oneOf(["DAY", "WEEK", "MONTH", "YEAR"]),
  intervalCount: positive(MAX_INTERVAL_COUNT),
  sellingPlanId: nullable(gid("SellingPlan")),
  lines,
  nextBillingDate: nullable(date),
  startedAt: date,
  cancelledAt: optional(date),
  cyclesCompleted: optional(count),
  churnType: optional(oneOf(["voluntary", "involuntary"])),
  revision: optional(Type.String({ pattern: "^[0-9]{1,40}$", must: "must be a decimal number in a string" })),
});

const Order = record("order", {
  subscription: gid("SubscriptionContract"),
  source: oneOf(ORDER_SOURCES),
  cycleNumber: count,
  shopifyId: nullable(gid("Order")),
  status: oneOf(ORDER_STATUSES),
  lines,
  subtotalCents: cents,
  discountCents: cents,
  creditsCents: cents,
  billedAt: date,
  attemptCount: optional(count),
  reason: optional(text),
  nextRetryAt: optional(date),
  retriesExhausted: optional(flag),
});

const eventId = Type.String({ format: "text", minLength: 1, must: `must be a string of 1 to ${MAX_STRING} characters, without U+0000` });

const Reward = record("reward", { id: eventId, source: oneOf(["loyalty", "streak", "referral"]), customer: gid("Customer") }, Type.Unknown());

const CancelFlow = record("cancel_flow", {
  id: eventId,
  subscription: gid("SubscriptionContract"),
  reason_id: nullable(text),
  offer_type: nullable(text),
  accepted: flag,
  saved: flag,
});

const SCHEMAS = { customer: Customer, subscription: Subscription, order: Order, reward: Reward, cancel_flow: CancelFlow };
type RecordType = keyof typeof SCHEMAS;
const TYPES = Object.keys(SCHEMAS) as RecordType[];

/**
 * Only the platform's adapter gives `asOf` and, where the consent has its own time, `consentAsOf` (epoch milliseconds): the platform's data about a
 * customer can arrive in any order.
 */
export type CustomerRecord = Static<typeof Customer> & { asOf?: number; consentAsOf?: number };
/** The interval is never YEAR once parsed. */
export type SubscriptionRecord = Static<typeof Subscription> & { interval: "DAY" | "WEEK" | "MONTH" };
export type OrderRecord = Static<typeof Order>;
export type RewardRecord = Static<typeof Reward> & { [field: string]: unknown };
export type CancelFlowRecord = Static<typeof CancelFlow>;
/** A record from outside (docs/records.md), checked and normalised: dates to the millisecond, YEAR as MONTH × 12. */
export type IncomingRecord = CustomerRecord | SubscriptionRecord | OrderRecord | RewardRecord | CancelFlowRecord;

/** Compiled when first needed: compiling takes milliseconds, and most commands read no record. */
const checks = new Map<RecordType, TypeCheck<TSchema>>();

function checkOf(type: RecordType): TypeCheck<TSchema> {
  const known = checks.get(type);
  if (known !== undefined) return known;
  const compiled = TypeCompiler.Compile<TSchema>(SCHEMAS[type]);
  checks.set(type, compiled);
  return compiled;
}

/** Checks a record's JSON text. */
export function parseRecordText(text: string): ReturnType<typeof parseRecord> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The message of JSON.parse quotes the text, which can hold personal data.
    return refuse("", "is not valid JSON");
  }
  return parseRecord(value);
}

/** Checks a parsed JSON value. @returns the record, or which field is wrong and why */
export function parseRecord(value: unknown): { record: IncomingRecord } | { refused: Refusal } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return refuse("", "must be a JSON object");
  const type = TYPES.find((known) => known === (value as { type?: unknown }).type);
  if (type === undefined) return refuse("type", `must be one of ${TYPES.join(", ")}`);
  const check = checkOf(type);
  if (!check.Check(value)) return { refused: explain(check, value) };
  const record = value as IncomingRecord;
  switch (record.type) {
    case "subscription":
      return { record: normalSubscription(record) };
    case "order":
      return normalOrder(record);
    case "reward":
      return normalReward(record);
    default:
      return { record };
  }
}

function refuse(field: string, reason: string): { refused: Refusal } {
  return { refused: { field, reason } };
}

function explain(check: TypeCheck<TSchema>, value: object): Refusal {
  const first = check.Errors(value).First();
  if (first === undefined) return { field: "", reason: "is not valid" };
  const keys = first.path.slice(1).split("/");
  const name = keys.pop() ?? "";
  const parent = keys.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], value) as object;
  if (first.value === undefined) {
    // A misspelt field is found twice: the right one is missing and the wrong one is unknown. The wrong one is more to the point.
    const known = fieldsOf(check, keys);
    const misspelt = Object.keys(parent).find((given) => !known.includes(given) && isLike(given, name));
    return misspelt === undefined ? { field: pathOf([...keys, name]), reason: "is missing" } : unknownField([...keys, misspelt], name);
  }
  if (first.type === ValueErrorType.ObjectAdditionalProperties) {
    const meant = fieldsOf(check, keys).find((known) => isLike(name, known));
    return unknownField([...keys, name], meant);
  }
  return { field: pathOf([...keys, name]), reason: first.schema["must"] ?? "is not valid" };
}

function unknownField(keys: readonly string[], meant: string | undefined): Refusal {
  return { field: pathOf(keys), reason: `is not a field of this record${meant === undefined ? "" : `: did you mean ${meant}?`}` };
}

/** From `["lines", "0", "title"]` to `lines[0].title`. */
function pathOf(keys: readonly string[]): string {
  return keys
    .map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${key}`))
    .join("")
    .replace(/^\./, "")
    .slice(0, 100);
}

/** The fields that the record, or a line item in it, may have. */
function fieldsOf(check: TypeCheck<TSchema>, keys: readonly string[]): string[] {
  const schema = keys[0] === "lines" ? lines.items : check.Schema();
  return Object.keys(schema["properties"] ?? {});
}

/** Whether a name is another spelling of a field: another case, `_` or `-` in it, or one or two letters wrong. */
function isLike(given: string, field: string): boolean {
  const plain = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, "");
  const mistakes = Math.min(2, Math.ceil(field.length / 3));
  return given.length <= 2 * field.length && distance(plain(given), plain(field)) <= mistakes;
}

function normalDate<T extends string | null | undefined>(date: T): T {
  return (typeof date === "string" ? isoUtc(parseUtc(date) as number) : date) as T;
}

/** Lines with their keys in one order, because they are stored, compared and served as they are. */
function normalLines(lines: LineItem[]): LineItem[] {
  return lines.map(({ variantId, productId, title, quantity, unitPriceCents }) => ({ variantId, productId, title, quantity, unitPriceCents }));
}

function normalSubscription(record: SubscriptionRecord | (Static<typeof Subscription> & { interval: "YEAR" })): SubscriptionRecord {
  const yearly = record.interval === "YEAR";
  return {
    ...record,
    interval: yearly ? "MONTH" : record.interval,
    intervalCount: yearly ? record.intervalCount * 12 : record.intervalCount,
    nextBillingDate: normalDate(record.nextBillingDate),
    startedAt: normalDate(record.startedAt),
    lines: normalLines(record.lines),
    ...("cancelledAt" in record && { cancelledAt: normalDate(record.cancelledAt) }),
  };
}

function normalOrder(record: OrderRecord): { record: OrderRecord } | { refused: Refusal } {
  if ((record.source === "checkout") !== (record.cycleNumber === 0)) {
    return refuse("cycleNumber", "must be 0 for a checkout order and 1 or more for a recurring one");
  }
  if (record.subtotalCents - record.discountCents - record.creditsCents < 0) {
    return refuse("totalCents", "would be below zero: subtotalCents less discountCents less creditsCents");
  }
  return {
    record: {
      ...record,
      billedAt: normalDate(record.billedAt),
      lines: normalLines(record.lines),
      ...("nextRetryAt" in record && { nextRetryAt: normalDate(record.nextRetryAt) }),
    },
  };
}

const SNAKE_CASE = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const MAX_DEPTH = 8;

/** A reward's own fields are passed on as they are. Only their names, sizes and depth are checked. */
function normalReward(record: RewardRecord): { record: RewardRecord } | { refused: Refusal } {
  for (const [field, value] of Object.entries(record)) {
    if (Object.hasOwn(Reward.properties, field)) continue;
    if (!SNAKE_CASE.test(field)) return refuse(field.slice(0, 100), "must have a name in snake_case");
    if (field === "customer_id") return refuse(field, "is set by the service: name the customer in `customer`");
    if (!canPass(value, MAX_DEPTH)) return refuse(field, `must hold strings ${TEXT_RULE}, and exact numbers, at most ${MAX_DEPTH} levels deep`);
  }
  return { record };
}

function canPass(value: unknown, depth: number): boolean {
  if (depth === 0) return false;
  if (typeof value === "string") return isText(value);
  if (typeof value === "number") return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([key, inner]) => canPass(key, 1) && canPass(inner, depth - 1));
}
