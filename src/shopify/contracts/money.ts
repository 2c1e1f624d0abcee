import type { OrderMoney } from "../../domain/records/platform-records.ts";
import { parseRecord } from "../../domain/records/records.ts";
import { type LineItem, MAX_LINES } from "../../domain/resources.ts";
import type { Log } from "../../lib/log.ts";
import { memoize } from "../../lib/text.ts";
import { isoUtc } from "../../lib/time.ts";
import type { ShopAddress } from "../api/address.ts";
import type { ContractLineNode } from "../api/operations/contracts.ts";
import type { Money } from "../api/operations/operation.ts";
import type { OrderLineNode } from "../api/operations/orders.ts";
import { clipText, platformRecordError } from "./values.ts";

/** Called with each amount that had a fraction of a minor unit and was rounded. */
export type NoteRounding = (money: Money) => void;

const noteNothing: NoteRounding = () => {};

/** Logs the first rounded amount of each shop and currency. The amounts of one order could fill the log. */
export type RoundingReport = (shop: ShopAddress, money: Money) => void;

export function createRoundingReport(log: Log): RoundingReport {
  const reported = new Set<string>();
  return ({ id, domain }, { amount, currencyCode }) => {
    const key = `${id} ${currencyCode}`;
    if (reported.has(key)) return;
    reported.add(key);
    const message = "the platform sends amounts with fractions of a minor unit; they are rounded, half to even";
    log.warn(message, { shop: domain, amount, currency: currencyCode });
  };
}

/** Returns the lines of a contract that name a product. @throws SdsError `bad_record` */
export function contractLines(lines: readonly ContractLineNode[]): LineItem[] {
  return productLines(lines.map((line) => ({ ...line, unitPriceCents: readAmount(line.currentPrice, noteNothing) })));
}

interface LineParts extends Omit<LineItem, "variantId" | "productId"> {
  variantId: string | null;
  productId: string | null;
}

/** Leaves out lines without a product (tips, deleted products): such lines count only in the sums. */
function productLines(lines: readonly LineParts[]): LineItem[] {
  const items = lines.flatMap(({ variantId, productId, title, quantity, unitPriceCents }): LineItem[] => {
    if (variantId === null || productId === null || quantity < 1) return [];
    return [{ variantId, productId, title: clipText(title), quantity, unitPriceCents }];
  });
  return items.slice(0, MAX_LINES);
}

/** Computes the expected cost of a contract's next order. @throws SdsError `bad_record` */
export function expectedMoney(lines: readonly ContractLineNode[], noteRounding = noteNothing): OrderMoney {
  const read = (money: Money) => readAmount(money, noteRounding);
  const subtotalCents = sum(lines.map(({ quantity, currentPrice }) => quantity * read(currentPrice)));
  const discountedCents = sum(lines.map(({ lineDiscountedPrice }) => read(lineDiscountedPrice)));
  const discountCents = Math.max(0, subtotalCents - discountedCents);
  return checkedMoney({ lines: contractLines(lines), subtotalCents, discountCents, creditsCents: 0 });
}

/**
 * Computes an order's cost in the shop's currency. The sums are exact, because they are added up from the lines.
 * @param creditTitle a discount with this title is store credit @throws SdsError `bad_record`
 */
export function orderMoney(
  lines: readonly OrderLineNode[],
  creditTitle: string,
  noteRounding = noteNothing,
): OrderMoney {
  const items = lines.map(({ title, quantity, variant, product, originalUnitPriceSet }) => ({
    variantId: variant?.id ?? null,
    productId: product?.id ?? null,
    title,
    quantity,
    unitPriceCents: readAmount(originalUnitPriceSet.shopMoney, noteRounding),
  }));
  const discounts = lines
    .flatMap(({ discountAllocations }) => discountAllocations)
    .map(({ allocatedAmountSet, discountApplication: { title, code } }) => ({
      cents: readAmount(allocatedAmountSet.shopMoney, noteRounding),
      isCredit: (title ?? code) === creditTitle,
    }));
  return checkedMoney({
    lines: productLines(items),
    subtotalCents: sum(items.map(({ quantity, unitPriceCents }) => quantity * unitPriceCents)),
    discountCents: sum(discounts.filter(({ isCredit }) => !isCredit).map(({ cents }) => cents)),
    creditsCents: sum(discounts.filter(({ isCredit }) => isCredit).map(({ cents }) => cents)),
  });
}

/** Checks money with the rules for the money of all order records. @throws SdsError `bad_record` */
function checkedMoney(money: OrderMoney): OrderMoney {
  const parsed = parseRecord({
    type: "order",
    subscription: "gid://shopify/SubscriptionContract/1",
    source: "checkout",
    cycleNumber: 0,
    shopifyId: null,
    status: "PAID",
    billedAt: isoUtc(0),
    ...money,
  });
  if (!("refused" in parsed)) return money;
  throw platformRecordError(`the platform's order is not valid: ${parsed.refused.field} ${parsed.refused.reason}`);
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, each) => total + each, 0);
}

function readAmount({ amount, currencyCode }: Money, noteRounding: NoteRounding): number {
  const read = minorUnits(amount, currencyCode);
  if (read === undefined)
    throw platformRecordError(`the platform sent an invalid amount: ${`${amount} ${currencyCode}`.slice(0, 40)}`);
  if (read.isRounded) noteRounding({ amount, currencyCode });
  return read.units;
}

const DECIMAL = /^(\d{1,15})(?:\.(\d{1,20}))?$/;

/** Returns the digits of a minor unit (ISO 4217): 2 for USD, 0 for JPY, 3 for KWD. Cached, because Intl is slow. */
const minorDigits = memoize(1_000, (currency) => {
  const format = new Intl.NumberFormat("en", { style: "currency", currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
});

/** A whole number of minor units. */
interface MinorUnits {
  units: number;
  /** Whether the amount had a fraction of a minor unit. */
  isRounded: boolean;
}

/** Reads a decimal string without floats, and rounds half a unit to even; undefined for other and negative amounts. */
export function minorUnits(amount: string, currency: string): MinorUnits | undefined {
  const match = DECIMAL.exec(amount);
  if (match === null) return undefined;
  const digits = minorDigits(currency);
  const fraction = match[2] ?? "";
  const whole = Number(`${match[1]}${fraction.slice(0, digits).padEnd(digits, "0")}`);
  const rest = fraction.slice(digits);
  const units = whole + Number(roundsUp(rest, whole % 2 === 1));
  return Number.isSafeInteger(units) ? { units, isRounded: /[1-9]/.test(rest) } : undefined;
}

/** @param rest the dropped digits */
function roundsUp(rest: string, isOdd: boolean): boolean {
  const isHalf = /^50*$/.test(rest);
  return isHalf ? isOdd : /^[5-9]/.test(rest);
}
