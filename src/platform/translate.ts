import { SdsError } from "../domain/error.ts";
import { minorUnits } from "../domain/money.ts";
import type { BillingAttempt, OrderMoney } from "../domain/platform-records.ts";
import { type CustomerRecord, MAX_STRING, parseRecord, type SubscriptionRecord } from "../domain/records.ts";
import type { LineItem } from "../domain/resources.ts";
import { isoUtc } from "../domain/time.ts";
import type { AttemptNode, ContractLineNode, ContractNode, CustomerNode, OrderLineNode } from "./operations.ts";

/** What the platform said makes no sense to us: asking again won't help. */
function senseless(what: string): SdsError {
  return new SdsError("bad_record", what);
}

export function dateFrom(text: string): string {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw senseless(`the platform wrote a date that is none: ${text.slice(0, 40)}`);
  return isoUtc(ms);
}

/** Of amounts that the shop itself may have let grow too long. */
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
  const { defaultEmailAddress: address } = node;
  const record = checked<CustomerRecord>({
    type: "customer",
    shopifyId: node.id,
    email: clipped(address?.emailAddress ?? null),
    firstName: clipped(node.firstName),
    lastName: clipped(node.lastName),
    marketingConsent: address?.marketingState === "SUBSCRIBED",
  });
  const asOf = Date.parse(node.updatedAt);
  return { ...record, asOf, consentAsOf: typeof address?.marketingUpdatedAt === "string" ? Date.parse(address.marketingUpdatedAt) : asOf };
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
    lines: lines.flatMap(({ variantId, productId, title, quantity, currentPrice }) => lineItem(variantId, productId, title, quantity, units(currentPrice))),
    nextBillingDate: node.nextBillingDate === null ? null : dateFrom(node.nextBillingDate),
    startedAt: dateFrom(node.createdAt),
    revision: node.revisionId,
  });
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
  return {
    lines: lines.flatMap(({ variantId, productId, title, quantity, currentPrice }) => lineItem(variantId, productId, title, quantity, units(currentPrice))),
    subtotalCents,
    discountCents: Math.max(0, subtotalCents - discounted),
    creditsCents: 0,
  };
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
  return {
    lines: lines.flatMap((line) => lineItem(line.variant?.id ?? null, line.product?.id ?? null, line.title, line.quantity, unitPrice(line))),
    subtotalCents: sum(lines.map((line) => line.quantity * unitPrice(line))),
    discountCents: sum(allocations.filter((each) => !isCredit(each)).map(amount)),
    creditsCents: sum(allocations.filter(isCredit).map(amount)),
  };
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

/** @param money of an order, by its gid */
export function billingAttempt({ createdAt, completedAt, state }: AttemptNode, money: (order: string) => OrderMoney | undefined): BillingAttempt {
  const startedAt = dateFrom(createdAt);
  const endedAt = dateFrom(completedAt ?? createdAt);
  if (state.__typename === "SubscriptionBillingAttemptFailedState") {
    const { general, payment, inventory } = state.error;
    const reason = (payment ?? inventory ?? general ?? "unexpected_error").toLowerCase();
    return { startedAt, endedAt, outcome: { kind: "declined", reason } };
  }
  const order = state.__typename === "SubscriptionBillingAttemptSuccessState" ? state.order?.id : undefined;
  const charged = order === undefined ? undefined : money(order);
  // A success whose order the platform doesn't show yet is not over: it is read again when the order comes.
  if (order === undefined || charged === undefined) return { startedAt, endedAt: null, outcome: { kind: "waiting" } };
  return { startedAt, endedAt, outcome: { kind: "charged", order: { shopifyId: order, ...charged } } };
}
