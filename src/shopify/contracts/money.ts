import { minorUnits } from "../../domain/money.ts";
import type { OrderMoney } from "../../domain/records/platform-records.ts";
import { parseRecord } from "../../domain/records/records.ts";
import { type LineItem, MAX_LINES } from "../../domain/resources.ts";
import { isoUtc } from "../../lib/time.ts";
import type { ContractLineNode } from "../api/operations/contracts.ts";
import type { Money } from "../api/operations/operation.ts";
import type { OrderLineNode } from "../api/operations/orders.ts";
import { badRecord, clipText } from "./values.ts";

/** Called with each amount that had a fraction of a minor unit and was rounded. */
export type NoteRounding = (money: Money) => void;

const noteNothing: NoteRounding = () => {};

/** The lines of a contract that name a product. @throws SdsError `bad_record` */
export function contractLines(lines: readonly ContractLineNode[]): LineItem[] {
  const items = lines.map((line) => {
    const { variantId, productId, title, quantity } = line;
    return lineItem({
      variantId,
      productId,
      title,
      quantity,
      unitPriceCents: readAmount(line.currentPrice, noteNothing),
    });
  });
  return items.flat().slice(0, MAX_LINES);
}

interface LineParts extends Omit<LineItem, "variantId" | "productId"> {
  variantId: string | null;
  productId: string | null;
}

/** A line without a product, such as a tip or one with a deleted product, is left out. It counts only in the sums. */
function lineItem({ variantId, productId, title, quantity, unitPriceCents }: LineParts): LineItem[] {
  if (variantId === null || productId === null || quantity < 1) return [];
  return [{ variantId, productId, title: clipText(title), quantity, unitPriceCents }];
}

/** What the next order of a contract should cost. @throws SdsError `bad_record` */
export function expectedMoney(
  lines: readonly ContractLineNode[],
  noteRounding: NoteRounding = noteNothing,
): OrderMoney {
  const read = (money: Money) => readAmount(money, noteRounding);
  const subtotalCents = sum(lines.map(({ quantity, currentPrice }) => quantity * read(currentPrice)));
  const discountedCents = sum(lines.map(({ lineDiscountedPrice }) => read(lineDiscountedPrice)));
  const discountCents = Math.max(0, subtotalCents - discountedCents);
  return checkedMoney({ lines: contractLines(lines), subtotalCents, discountCents, creditsCents: 0 });
}

/**
 * What an order costs, in the shop's currency: the lines before discounts, and what each discount takes off them. These
 * parts give exact sums.
 * @param creditTitle a discount with this title is store credit
 * @throws SdsError `bad_record`
 */
export function orderMoney(
  lines: readonly OrderLineNode[],
  creditTitle: string,
  noteRounding: NoteRounding = noteNothing,
): OrderMoney {
  const unitPrice = ({ originalUnitPriceSet }: OrderLineNode) =>
    readAmount(originalUnitPriceSet.shopMoney, noteRounding);
  const items = lines.map((line) => {
    const { title, quantity } = line;
    const [variantId, productId] = [line.variant?.id ?? null, line.product?.id ?? null];
    return lineItem({ variantId, productId, title, quantity, unitPriceCents: unitPrice(line) });
  });
  const discounts = lines
    .flatMap(({ discountAllocations }) => discountAllocations)
    .map(({ allocatedAmountSet, discountApplication: { title, code } }) => ({
      cents: readAmount(allocatedAmountSet.shopMoney, noteRounding),
      isCredit: (title ?? code) === creditTitle,
    }));
  return checkedMoney({
    lines: items.flat().slice(0, MAX_LINES),
    subtotalCents: sum(lines.map((line) => line.quantity * unitPrice(line))),
    discountCents: sum(discounts.filter(({ isCredit }) => !isCredit).map(({ cents }) => cents)),
    creditsCents: sum(discounts.filter(({ isCredit }) => isCredit).map(({ cents }) => cents)),
  });
}

/** Checks money like that of the order records that come from elsewhere. @throws SdsError `bad_record` */
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
  throw badRecord(`the platform's order is not valid: ${parsed.refused.field} ${parsed.refused.reason}`);
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, each) => total + each, 0);
}

function readAmount({ amount, currencyCode }: Money, noteRounding: NoteRounding): number {
  const read = minorUnits(amount, currencyCode);
  if (read === undefined)
    throw badRecord(`the platform sent an invalid amount: ${`${amount} ${currencyCode}`.slice(0, 40)}`);
  if (read.isRounded) noteRounding({ amount, currencyCode });
  return read.units;
}
