import type { ExchangeRate } from "../../domain/platform/contract-read.ts";
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

/** Logs the first rounded amount of each shop and currency. Logging all amounts of an order could fill the log. */
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

/**
 * The rate to the shop's currency. `own` means that the amounts are in the shop's currency. null means that the rate is
 * not known; then all amounts are 0.
 */
export type Rate = ExchangeRate | "own" | null;

/** Returns the lines of a contract that name a product. @throws SdsError `bad_record` */
export function contractLines(lines: readonly ContractLineNode[], rate: Rate = "own"): LineItem[] {
  return productLines(
    lines.map((line) => ({ ...line, unitPriceCents: readAmount(line.currentPrice, noteNothing, rate) })),
  );
}

interface LineParts extends Omit<LineItem, "variantId" | "productId"> {
  variantId: string | null;
  productId: string | null;
}

/** Returns the lines that have a product. Other lines (tips, deleted products) are included in the sums only. */
function productLines(lines: readonly LineParts[]): LineItem[] {
  const items = lines.flatMap(({ variantId, productId, title, quantity, unitPriceCents }): LineItem[] => {
    if (variantId === null || productId === null || quantity < 1) return [];
    return [{ variantId, productId, title: clipText(title), quantity, unitPriceCents }];
  });
  return items.slice(0, MAX_LINES);
}

/** Computes the expected cost of a contract's next order. @throws SdsError `bad_record` */
export function expectedMoney(
  lines: readonly ContractLineNode[],
  noteRounding = noteNothing,
  rate: Rate = "own",
): OrderMoney {
  const read = (money: Money) => readAmount(money, noteRounding, rate);
  const costs = lines.map((line) => {
    const [originalCents, discountedCents] = [line.quantity * read(line.currentPrice), read(line.lineDiscountedPrice)];
    // Without a discount, the converted total is not used: it could differ from the sum of the prices by some cents.
    return { originalCents, discountedCents: isDiscounted(line) ? discountedCents : originalCents };
  });
  const subtotalCents = sum(costs.map(({ originalCents }) => originalCents));
  const discountedCents = sum(costs.map((line) => line.discountedCents));
  const discountCents = Math.max(0, subtotalCents - discountedCents);
  return checkedMoney({ lines: contractLines(lines, rate), subtotalCents, discountCents, creditsCents: 0 });
}

function isDiscounted({ quantity, currentPrice, lineDiscountedPrice }: ContractLineNode): boolean {
  return quantity * readAmount(currentPrice) !== readAmount(lineDiscountedPrice);
}

/** A line of an order. Its discounts are for the whole `quantity`; only the share of `chargedQuantity` is used. */
export interface ChargedLine extends OrderLineNode {
  chargedQuantity: number;
}

/**
 * Computes an order's cost in the shop's currency. The sums are exact, because they are added up from the lines.
 * @param creditTitle a discount with this title is store credit @throws SdsError `bad_record`
 */
export function orderMoney(lines: readonly ChargedLine[], creditTitle: string, noteRounding = noteNothing): OrderMoney {
  const items = lines.map(({ title, chargedQuantity: quantity, variant, product, originalUnitPriceSet }) => ({
    variantId: variant?.id ?? null,
    productId: product?.id ?? null,
    title,
    quantity,
    unitPriceCents: readAmount(originalUnitPriceSet.shopMoney, noteRounding),
  }));
  const discounts = lines
    .flatMap(({ quantity, chargedQuantity, discountAllocations }) => {
      const share: Rate = quantity === chargedQuantity ? "own" : { from: quantity, to: chargedQuantity };
      return discountAllocations.map((allocation) => ({ ...allocation, share }));
    })
    .map(({ allocatedAmountSet, discountApplication: { title, code }, share }) => ({
      cents: readAmount(allocatedAmountSet.shopMoney, noteRounding, share),
      isCredit: (title ?? code) === creditTitle,
    }));
  return checkedMoney({
    lines: productLines(items),
    subtotalCents: sum(items.map(({ quantity, unitPriceCents }) => quantity * unitPriceCents)),
    discountCents: sum(discounts.filter(({ isCredit }) => !isCredit).map(({ cents }) => cents)),
    creditsCents: sum(discounts.filter(({ isCredit }) => isCredit).map(({ cents }) => cents)),
  });
}

/** Checks money with the rules of order records. @throws SdsError `bad_record` */
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

/** Converts an amount to minor units of the shop's currency. */
function readAmount({ amount, currencyCode }: Money, noteRounding = noteNothing, rate: Rate = "own"): number {
  const read = minorUnits(amount, currencyCode, rate === null || rate === "own" ? SAME : rate);
  if (read === undefined)
    throw platformRecordError(`the platform sent an invalid amount: ${`${amount} ${currencyCode}`.slice(0, 40)}`);
  if (read.isRounded && rate === "own") noteRounding({ amount, currencyCode });
  return rate === null ? 0 : read.units;
}

const DECIMAL = /^(\d{1,15})(?:\.(\d{1,20}))?$/;
const USUAL_DIGITS = 2;

/**
 * Returns a currency's number of decimal digits (ISO 4217): 2 for USD, 0 for JPY, 3 for KWD. Returns 2 for a code that
 * Intl refuses, like the platform's USDC. Cached, because Intl is slow.
 */
const minorDigits = memoize(1_000, (currency) => {
  try {
    const format = new Intl.NumberFormat("en", { style: "currency", currency });
    return format.resolvedOptions().maximumFractionDigits ?? USUAL_DIGITS;
  } catch {
    return USUAL_DIGITS;
  }
});

const SAME: ExchangeRate = { from: 1, to: 1 };

/** A whole number of minor units. */
interface MinorUnits {
  units: number;
  /** Whether the amount had a fraction of a minor unit. */
  isRounded: boolean;
}

/**
 * Reads a decimal string without floats, and rounds once, half to even.
 * @param rate converts to the minor units of another currency
 * @returns undefined if the text is not an amount of 0 or more
 */
export function minorUnits(amount: string, currency: string, { from, to } = SAME): MinorUnits | undefined {
  const match = DECIMAL.exec(amount);
  if (match === null) return undefined;
  const fraction = match[2] ?? "";
  const dividend = BigInt(`${match[1]}${fraction}`) * 10n ** BigInt(minorDigits(currency)) * BigInt(to);
  const divisor = 10n ** BigInt(fraction.length) * BigInt(from);
  const [whole, rest] = [dividend / divisor, dividend % divisor];
  const roundsUp = 2n * rest > divisor || (2n * rest === divisor && whole % 2n === 1n);
  const units = Number(whole) + Number(roundsUp);
  return Number.isSafeInteger(units) ? { units, isRounded: rest > 0n } : undefined;
}
