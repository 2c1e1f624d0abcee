import { isDeepStrictEqual } from "node:util";
import type { LineItem, Order, Subscription } from "../../../src/domain/resources.ts";
import { cycleOf } from "../../../test/support/platform/cycles.ts";
import { minorUnits, moneyBag } from "../../../test/support/platform/money.ts";
import type { AttemptRow, ContractRow, LineRow, OrderRow } from "../../../test/support/platform/rows.ts";
import type { PlatformShop } from "../../../test/support/platform/shop.ts";
import { type OrderLine, orderTotals } from "../../../test/support/platform/totals.ts";

/*
 * Computes what the mirror must show, from the rows of the stand-in, by the rules of docs/connecting.md. This file uses
 * no function of the program, because a fault in a shared function would stay hidden.
 */

export type Rows<T> = Partial<T>;

const DAY_MS = 86_400_000;
const SETTLED_DAYS = 39;
const MOST_DECLINES = 3;
const CREDIT_TITLE = "Loyalty credit";
const ENDED = ["FAILED", "CANCELLED", "EXPIRED"];

/**
 * An exchange rate: the amount `from` in a currency is worth the amount `to` in the shop's currency. Both are in minor
 * units. The shop's currency has two decimal places. null: the rate is unknown, so amounts are 0.
 */
type Rate = { from: number; to: number } | null;
const SAME: Rate = { from: 1, to: 1 };

/** Divides, and rounds half to even. */
function divided(dividend: number, divisor: number): number {
  const whole = Math.floor(dividend / divisor);
  const rest = 2 * (dividend - whole * divisor) - divisor;
  return whole + Number(rest > 0 || (rest === 0 && whole % 2 === 1));
}

function converted(minor: number, rate: Rate): number {
  return rate === null ? 0 : divided(minor * rate.to, rate.from);
}

/** Converts an amount of an order to minor units of the shop's currency. */
function shopMinor(minor: number, order: OrderRow): number {
  const { amount, currencyCode } = moneyBag(minor, order).shopMoney;
  return minorUnits(amount, currencyCode);
}

function rateOf(order: OrderRow): Rate {
  const from = order.lines.reduce((sum, { price }) => sum + price, 0);
  return { from, to: order.lines.reduce((sum, { price }) => sum + shopMinor(price, order), 0) };
}

function ordersOf({ originOrder, attempts }: ContractRow): OrderRow[] {
  return [originOrder, ...attempts.map(({ order }) => order)].filter((order) => order !== null);
}

/** The rates that orders ever had, by shop and currency. */
const everyRate = new WeakMap<PlatformShop, Map<string, Rate[]>>();

/** Notes the rates of all orders, because a change of an order's lines can change its rate. */
export function noteRates(remote: PlatformShop): void {
  const rates = everyRate.get(remote) ?? new Map<string, Rate[]>();
  everyRate.set(remote, rates);
  for (const contract of contractsOf(remote))
    for (const order of ordersOf(contract)) {
      const known = rates.get(contract.currency) ?? [];
      const rate = rateOf(order);
      if (!known.some((each) => isDeepStrictEqual(each, rate))) rates.set(contract.currency, [...known, rate]);
    }
}

/**
 * The rates that the mirror may use. A contract with orders has the rate of its newest order. A contract without orders
 * has no rate yet, or any rate that an order in its currency ever had.
 */
export function ratesOf(remote: PlatformShop, contract: ContractRow): Rate[] {
  if (contract.currency === remote.currency) return [SAME];
  const own = ordersOf(contract);
  const newest = Math.max(...own.map(({ processedAt }) => processedAt));
  if (own.length > 0) return own.filter(({ processedAt }) => processedAt === newest).map(rateOf);
  return [null, ...(everyRate.get(remote)?.get(contract.currency) ?? [])];
}

export function contractsOf(remote: PlatformShop): ContractRow[] {
  return remote.ids("contract").flatMap((id) => remote.find("contract", id) ?? []);
}

function itemOf({ title, variant, product }: LineRow, quantity: number, unitPriceCents: number): LineItem[] {
  if (variant === null || product === null || quantity === 0) return [];
  return [{ variantId: variant, productId: product, title, quantity, unitPriceCents }];
}

/** Whether a contract has this cycle. A contract with a last cycle has no later cycles. */
export function hasCycle({ maxCycles }: ContractRow, index: number): boolean {
  return maxCycles === null || index <= maxCycles;
}

/** The cycle that is billed next; undefined after the last cycle. */
export function nextCycle(contract: ContractRow, now: number) {
  const billed = contract.attempts.flatMap(({ state, cycleIndex }) => (state === "succeeded" ? [cycleIndex] : []));
  let cycle = cycleOf(contract, Math.max(0, ...billed) + 1);
  while (cycle.skipped || cycle.expectedAt < now - SETTLED_DAYS * DAY_MS) cycle = cycleOf(contract, cycle.index + 1);
  return hasCycle(contract, cycle.index) ? cycle : undefined;
}

export function expectedSubscription(
  remote: PlatformShop,
  contract: ContractRow,
  rate: Rate,
  now: number,
): Rows<Subscription> {
  const { status, interval, intervalCount, lines, nextBillingDate: written, createdAt } = contract;
  const next = nextCycle(contract, now);
  const date = next && (written !== null && written > next.startAt ? written : next.expectedAt);
  const charged = new Set(
    contract.attempts.filter(({ state }) => state === "succeeded").map((each) => each.cycleIndex),
  );
  return {
    shopifyId: remote.gid(contract),
    status: status === "FAILED" ? "PAYMENT_FAILED" : status,
    interval: interval === "YEAR" ? "MONTH" : interval,
    intervalCount: interval === "YEAR" ? 12 * intervalCount : intervalCount,
    sellingPlanId: lines.find(({ sellingPlan }) => sellingPlan !== null)?.sellingPlan ?? null,
    lines: lines.flatMap((line) => itemOf(line, line.quantity, converted(line.price, rate))),
    nextBillingDate: status === "CANCELLED" || status === "EXPIRED" || date === undefined ? null : iso(date),
    cyclesCompleted: charged.size,
    startedAt: iso(createdAt),
  };
}

export interface ExpectedOrder {
  order: Rows<Order>;
  /**
   * Whether the mirror may lack the order. If so, its cycle has no attempts. Also, the skip was undone, the cycle is
   * too far ahead, or the contract was cancelled or has expired.
   */
  optional: boolean;
}

/** The orders of a contract by cycle. The checkout is 0. */
export function expectedOrders(
  remote: PlatformShop,
  contract: ContractRow,
  rate: Rate,
  now: number,
): Map<number, ExpectedOrder> {
  const orders = new Map<number, ExpectedOrder>();
  const { originOrder, attempts, skips } = contract;
  if (originOrder !== null) {
    const order = { ...chargedMoney(remote, originOrder, contract), source: "checkout" as const, cycleNumber: 0 };
    orders.set(0, { order: { ...order, status: "PAID", billedAt: iso(originOrder.processedAt) }, optional: false });
  }
  const next = nextCycle(contract, now);
  for (const index of new Set([...attempts.map(({ cycleIndex }) => cycleIndex), ...(skips?.keys() ?? [])])) {
    const cycle = cycleOf(contract, index);
    const charge = cycle.attempts.find(({ state }) => state === "succeeded");
    const money =
      charge?.order == null
        ? openMoney(cycle.editedLines ?? contract.lines, rate)
        : chargedMoney(remote, charge.order, contract);
    const [first] = cycle.attempts;
    const wasSkipped = skips?.has(index) === true;
    const billedAt = first !== undefined && !wasSkipped ? { billedAt: iso(first.createdAt) } : {};
    const status = statusOf(contract, cycle.attempts, cycle.skipped);
    const isAhead =
      (next !== undefined && index > next.index + 1) ||
      contract.status === "CANCELLED" ||
      contract.status === "EXPIRED";
    const optional = first === undefined && (!cycle.skipped || isAhead);
    orders.set(index, { order: { ...money, source: "recurring", status, ...billedAt }, optional });
  }
  return orders;
}

function statusOf(contract: ContractRow, attempts: readonly AttemptRow[], skipped: boolean): Order["status"] {
  const charge = attempts.find(({ state }) => state === "succeeded");
  const declines = attempts.filter(({ state }) => state === "failed");
  if (charge !== undefined) return declines.length > 0 ? "RECOVERED" : "PAID";
  if (["pending", "challenged"].includes(attempts.at(-1)?.state ?? "")) return "PENDING";
  if (declines.length === 0) return skipped ? "SKIPPED" : "PENDING";
  const payments = declines.filter(({ code }) => code !== "INSUFFICIENT_INVENTORY");
  return ENDED.includes(contract.status) || payments.length > MOST_DECLINES ? "UNCOLLECTIBLE" : "FAILED";
}

type Money = Rows<
  Pick<Order, "shopifyId" | "lines" | "subtotalCents" | "discountCents" | "creditsCents" | "totalCents">
>;

function openMoney(lines: readonly LineRow[], rate: Rate): Money {
  const costs = lines.map(({ price, quantity, discounted }) => {
    const original = quantity * converted(price, rate);
    return { original, discounted: discounted === price * quantity ? original : converted(discounted, rate) };
  });
  const subtotalCents = costs.reduce((sum, { original }) => sum + original, 0);
  const discountCents = Math.max(0, subtotalCents - costs.reduce((sum, { discounted }) => sum + discounted, 0));
  return {
    shopifyId: null,
    lines: lines.flatMap((line) => itemOf(line, line.quantity, converted(line.price, rate))),
    subtotalCents,
    discountCents,
    creditsCents: 0,
    totalCents: subtotalCents - discountCents,
  };
}

function chargedMoney(remote: PlatformShop, order: OrderRow, contract: ContractRow): Money {
  const all = orderTotals(order).lines;
  const left = all.map(({ line }, index) => order.currentQuantities?.[index] ?? line.quantity);
  const countsLeft = order.edited && left.some((quantity) => quantity > 0);
  const own = all
    .map((line, index) => ({ ...line, quantity: countsLeft ? (left[index] ?? 0) : line.line.quantity }))
    .filter((line) => line.contract === contract);
  // If an order shows no product, the mirror shows the contract's lines instead.
  const isHidden = own.every(({ line }) => line.variant === null || line.product === null);
  const costs = own.map(({ line, quantity }) => ({ line, quantity, unit: shopMinor(line.price, order) }));
  const subtotalCents = costs.reduce((sum, { quantity, unit }) => sum + quantity * unit, 0);
  const creditsCents = discountsOf(own, order, true);
  const discountCents = discountsOf(own, order, false);
  return {
    shopifyId: remote.gid(order),
    ...(!isHidden && { lines: costs.flatMap(({ line, quantity, unit }) => itemOf(line, quantity, unit)) }),
    subtotalCents,
    discountCents,
    creditsCents,
    totalCents: subtotalCents - discountCents - creditsCents,
  };
}

function discountsOf(lines: readonly (OrderLine & { quantity: number })[], order: OrderRow, areCredits: boolean) {
  const parts = lines.flatMap(({ allocations, line, quantity }) =>
    allocations
      .filter(({ discount }) => (discount.title === CREDIT_TITLE) === areCredits)
      .map(({ amount }) => divided(shopMinor(amount, order) * quantity, line.quantity)),
  );
  return parts.reduce((sum, part) => sum + part, 0);
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
