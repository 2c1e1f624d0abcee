import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  LETTER_U,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from "../../lib/json.ts";
import type { OrderRecord, RewardRecord, SubscriptionRecord } from "./record-schemas.ts";
import { type Refusal, refuse } from "./refusal.ts";

/** Maximum size in bytes of a stored record, which is the JSON of its row (docs/records.md, "Limits"). */
const MAX_RECORD_BYTES = 256 * 1024;
const TOO_LARGE = `makes the record larger than ${MAX_RECORD_BYTES / 1024} KiB as stored`;

/** Maximum nesting depth of a record's text. Valid records are less deep: a reward's own fields have 8 levels. */
const MAX_TEXT_DEPTH = 16;
/** A text up to this length is parsed unchecked, because parsing it cannot take long. */
const SHORT_TEXT = 16 * 1024;
/**
 * Maximum number of characters of a record's text; white space is not counted. The limit is above MAX_RECORD_BYTES,
 * because a record can be larger than its row: the row lacks some fields. The row's size is checked later.
 */
const MAX_TEXT_CHARACTERS = MAX_RECORD_BYTES + 32 * 1024;
/** Maximum size in bytes of a line item: a title with six bytes per character, two gids and two numbers. */
const MAX_LINE_ITEM_BYTES = 6 * 1024 + 256;

/** A row has ids and dates that its record can lack. These are their longest values. */
const ID = `sub_${"a".repeat(24)}`;
const DATE = "2026-01-31T09:30:00.000Z";

/** Refuses a subscription or an order whose row would be too large. Only line items can make a row so large. */
export function refuseLargeRow(record: SubscriptionRecord | OrderRecord): { refused: Refusal } | undefined {
  if (record.lines.length * MAX_LINE_ITEM_BYTES < MAX_RECORD_BYTES / 2) return undefined;
  const isLarge = bytesOf(record.type === "order" ? orderRow(record) : subscriptionRow(record)) > MAX_RECORD_BYTES;
  return isLarge ? refuse("lines", TOO_LARGE) : undefined;
}

/** Refuses a reward that is too large, and names its largest field. */
export function refuseLargeReward(record: RewardRecord): { refused: Refusal } | undefined {
  if (bytesOf(record) <= MAX_RECORD_BYTES) return undefined;
  const sizes = Object.entries(record).map(([field, value]) => ({ field, bytes: bytesOf(value) }));
  const largest = sizes.reduce((most, each) => (each.bytes > most.bytes ? each : most));
  return refuse(largest.field.slice(0, 100), TOO_LARGE);
}

function subscriptionRow({
  type: _,
  customer: _customer,
  revision: _revision,
  churnType: _churn,
  ...record
}: SubscriptionRecord) {
  const cyclesCompleted = record.cyclesCompleted ?? Number.MAX_SAFE_INTEGER;
  return { id: ID, customerId: ID, ...record, cyclesCompleted, nextBillingDate: DATE, cancelledAt: DATE };
}

function orderRow(record: OrderRecord) {
  const { shopifyId, source, cycleNumber, status, lines, subtotalCents, discountCents, creditsCents, billedAt } =
    record;
  const totalCents = subtotalCents - discountCents - creditsCents;
  const ids = { id: ID, shopifyId, contractId: ID, customerId: ID };
  const money = { subtotalCents, discountCents, creditsCents, totalCents };
  return { ...ids, source, cycleNumber, status, lines, ...money, billedAt };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/**
 * Refuses a text that is too large or too deep for a valid record, before it is parsed. JSON.parse takes 0.1 s for a
 * megabyte of small objects or brackets. It takes only milliseconds for any text that passes this check.
 */
export function refuseLargeText(text: string): { refused: Refusal } | undefined {
  if (text.length <= SHORT_TEXT) return undefined;
  let characters = 0;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at += text.charCodeAt(at + 1) === LETTER_U ? 5 : 1;
      else if (code === QUOTE) inString = false;
    } else if (code <= SPACE) continue;
    else if (code === QUOTE) inString = true;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) depth += 1;
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth -= 1;
    characters += 1;
    if (characters > MAX_TEXT_CHARACTERS) return refuse("", `is larger than ${MAX_RECORD_BYTES / 1024} KiB`);
    if (depth > MAX_TEXT_DEPTH) return refuse("", `is nested more than ${MAX_TEXT_DEPTH} levels deep`);
  }
  return undefined;
}
