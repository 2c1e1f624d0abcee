import { SdsError } from "../../domain/error.ts";
import { minorUnits } from "../../domain/money.ts";
import type { BillingAttempt, OrderMoney } from "../../domain/platform-records.ts";
import { type CustomerRecord, MAX_LINES, MAX_STRING, parseRecord, type SubscriptionRecord } from "../../domain/records.ts";
import type { LineItem } from "../../domain/resources.ts";
import { isoUtc } from "../../lib/time.ts";
import type { AttemptNode, ContractLineNode, ContractNode, CustomerNode, OrderLineNode } from "../api/operations.ts";

/** What the platform said makes no sense to us: asking again won't help. */
function senseless(what: string): SdsError {
  return new SdsError("bad_record", what);
}

/** The end of the year 9999, where ISO dates end to have four digits. */
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59);

export function dateFrom(text: string): string {
  const ms = Date.parse(text);
  if (!(ms >= 0 && ms <= LATEST)) throw senseless(`the platform wrote a date that is none: ${text.slice(0, 40)}`);
  return isoUtc(ms);
}

/** Of texts that the shop may have let grow too long. */
function clipped(text: string | null): string | null {
  return text === null ? null : text.slice(0, MAX_STRING).toWellFormed();
}

function units({ amount, currencyCode }: { amount: string; currencyCode: string }): number {
  const found = minorUnits(amount, currencyCode);
  if (found === undefined) throw senseless(`the platform wrote an amount that is no whole number of minor units: ${amount.slice(0, 40)} ${currencyCode}`);
  return found;
}

/** Records of the platform pass the same check as all others. */
function checked<T extends CustomerRecord | SubscriptionRecord>(candidate: T): T {
  const parsed = parseRecord(candidate);
  if ("refused" in parsed) throw senseless(`the platform's ${candidate.type} does not fit: ${parsed.refused.field} ${parsed.refused.reason}`);
  return parsed.record as T;
}

export function customerRecord(node: CustomerNode): CustomerRecord {
  const { defaultEmailAddress: address, firstName, lastName } = node;
  const record = checked<CustomerRecord>({
    type: "customer",
    shopifyId: node.id,
    ...(address !== undefined && { email: clipped(address?.emailAddress ?? null), marketingConsent: address?.marketingState === "SUBSCRIBED" }),
    ...(firstName !== undefined && { firstName: clipped(firstName) }),
    ...(lastName !== undefined && { lastName: clipped(lastName) }),
  });
  const asOf = Date.parse(dateFrom(node.updatedAt));
  const consentAt = address?.marketingUpdatedAt;
  return { ...record, asOf, consentAsOf: typeof consentAt === "string" ? Date.parse(dateFrom(consentAt)) : asOf };
}

/** The platform calls one status by another name. */
const STATUS: Record<string, string> = { FAILED: "PAYMENT_FAILED" };

/** @param customer the owner's gid, where the platform deleted the person and the mirror still knows them */
export function subscriptionRecord(node: ContractNode, lines: readonly ContractLineNode[], customer: string): SubscriptionRecord {
  return checked<SubscriptionRecord>({
    type: "subscription",
    shopifyId: node.id,
    customer,
    status: (STATUS[node.status] ?? node.status) as SubscriptionRecord["status"],
    interval: node.billingPolicy.interval as SubscriptionRecord["interval"],
    intervalCount: node.billingPolicy.intervalCount,
    sellingPlanId: lines.find(({ sellingPlanId }) => sellingPlanId !== null)?.sellingPlanId ?? null,
    lines: lineItems(lines),
    nextBillingDate: node.nextBillingDate === null ? null : dateFrom(node.nextBillingDate),
    startedAt: dateFrom(node.createdAt),
    revision: node.revisionId,
  });
}

function lineItems(lines: readonly ContractLineNode[]): LineItem[] {
  return lines
    .flatMap(({ variantId, productId, title, quantity, currentPrice }) => lineItem(variantId, productId, title, quantity, units(currentPrice)))
    .slice(0, MAX_LINES);
}

/** A line without a product, such as a tip, or one whose product was deleted, has nothing to be named by: it counts in the sums alone. */
function lineItem(variantId: string | null, productId: string | null, title: string, quantity: number, unitPriceCents: number): LineItem[] {
  if (variantId === null || productId === null || quantity < 1) return [];
  return [{ variantId, productId, title: clipped(title) ?? "", quantity, unitPriceCents }];
}

/** What a contract's next order will cost, as far as it can be told before. */
export function expectedMoney(lines: readonly ContractLineNode[]): OrderMoney {
  const subtotalCents = sum(lines.map(({ quantity, currentPrice }) => quantity * units(currentPrice)));
  const discounted = sum(lines.map(({ lineDiscountedPrice }) => units(lineDiscountedPrice)));
  return checkedMoney({ lines: lineItems(lines), subtotalCents, discountCents: Math.max(0, subtotalCents - discounted), creditsCents: 0 });
}

/**
 * An order's money in the shop's currency: the lines before discounts, and what was allocated to them of each discount, so that the sums are exact.
 * @param creditTitle a discount of this title is store credit
 */
export function orderMoney(lines: readonly OrderLineNode[], creditTitle: string): OrderMoney {
  const allocations = lines.flatMap(({ discountAllocations }) => discountAllocations);
  const isCredit = ({ discountApplication: { title, code } }: (typeof allocations)[number]) => (title ?? code) === creditTitle;
  const amount = ({ allocatedAmountSet }: (typeof allocations)[number]) => units(allocatedAmountSet.shopMoney);
  const unitPrice = ({ originalUnitPriceSet }: OrderLineNode) => units(originalUnitPriceSet.shopMoney);
  const items = lines.flatMap((line) => lineItem(line.variant?.id ?? null, line.product?.id ?? null, line.title, line.quantity, unitPrice(line)));
  return checkedMoney({
    lines: items.slice(0, MAX_LINES),
    subtotalCents: sum(lines.map((line) => line.quantity * unitPrice(line))),
    discountCents: sum(allocations.filter((each) => !isCredit(each)).map(amount)),
    creditsCents: sum(allocations.filter(isCredit).map(amount)),
  });
}

/** Passes the check of the order records that come from elsewhere. */
function checkedMoney(money: OrderMoney): OrderMoney {
  const rest = {
    subscription: "gid://shopify/SubscriptionContract/1",
    source: "checkout",
    cycleNumber: 0,
    shopifyId: null,
    status: "PAID",
    billedAt: isoUtc(0),
  };
  const parsed = parseRecord({ type: "order", ...rest, ...money });
  if ("refused" in parsed) throw senseless(`the platform's order does not fit: ${parsed.refused.field} ${parsed.refused.reason}`);
  return money;
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, each) => total + each, 0);
}

/** Paid, whatever became of the money later. */
const PAID = new Set(["PAID", "PARTIALLY_PAID", "PARTIALLY_REFUNDED", "REFUNDED"]);

/** A checkout as the one attempt of cycle 0. */
export function checkoutAttempt(
  order: { id: string; createdAt: string; processedAt: string | null; displayFinancialStatus: string | null },
  money: OrderMoney,
): BillingAttempt {
  const at = dateFrom(order.processedAt ?? order.createdAt);
  if (!PAID.has(order.displayFinancialStatus ?? "")) return { startedAt: at, endedAt: null, outcome: { kind: "waiting" } };
  return { startedAt: at, endedAt: at, outcome: { kind: "charged", order: { shopifyId: order.id, ...money } } };
}

/** A success whose order doesn't show by then has none to show: it was deleted, or is older than the app may see. Milliseconds. */
const ORDER_MAY_TAKE = 3_600_000;

/**
 * @param money of an order, by its gid
 * @param expected of the contract, for a charge whose order can't be seen
 */
export function billingAttempt(
  { createdAt, completedAt, state }: AttemptNode,
  money: (order: string) => OrderMoney | undefined,
  expected: OrderMoney,
  now: number,
): BillingAttempt {
  const startedAt = dateFrom(createdAt);
  const endedAt = dateFrom(completedAt ?? createdAt);
  if (state.__typename === "SubscriptionBillingAttemptFailedState") {
    const { general, payment, inventory } = state.error;
    const reason = (payment ?? inventory ?? general ?? "unexpected_error").toLowerCase();
    return { startedAt, endedAt, outcome: { kind: "declined", reason } };
  }
  if (state.__typename !== "SubscriptionBillingAttemptSuccessState") return { startedAt, endedAt: null, outcome: { kind: "waiting" } };
  const order = state.order?.id ?? null;
  const shown = order === null ? undefined : money(order);
  if (shown === undefined && now - Date.parse(endedAt) < ORDER_MAY_TAKE) return { startedAt, endedAt: null, outcome: { kind: "waiting" } };
  const { lines, subtotalCents, discountCents, creditsCents } = shown ?? expected;
  return { startedAt, endedAt, outcome: { kind: "charged", order: { shopifyId: order, lines, subtotalCents, discountCents, creditsCents } } };
}
