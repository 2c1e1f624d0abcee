import { cancelFlow, customer, gid, line, order, reward, subscription } from "../../test/support/records.ts";

/** Made-up shops and people. No real person, shop or address is meant. */
export const ALPHA = "alpha.myshopify.com";
export const BETA = "beta.myshopify.com";
/** A shop without data, which uninstalls the app. */
export const GAMMA = "gamma.myshopify.com";

const day = (n: number) => `2026-01-${String(n).padStart(2, "0")}T08:00:00.000Z`;
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

const NAMES = ["Ada", "Žofie", "李娜", "Zoë \u{1F33B}", "Björk", "<b>Bo</b>", 'Quote "Q"', "back\\slash", "tab\there"];
const SUBSCRIPTION_STATUSES = ["ACTIVE", "PAUSED", "CANCELLED", "PAYMENT_FAILED", "EXPIRED"] as const;
const ORDER_STATUSES = ["PAID", "FAILED", "RECOVERED", "UNCOLLECTIBLE", "SKIPPED", "PENDING"] as const;
const INTERVALS = ["DAY", "WEEK", "MONTH"] as const;

/** Makes customers with all fields, with some fields and without fields. */
function people(count: number) {
  return numbers(count).map((n) =>
    n % 5 === 0
      ? customer(n)
      : customer(n, {
          email: `person-${n}@example.com`,
          firstName: NAMES[n % NAMES.length] ?? null,
          lastName: n % 3 === 0 ? null : `Example ${n}`,
          marketingConsent: n % 2 === 0,
          creditsCents: n * 100,
          loyaltyTier: n % 4,
        }),
  );
}

/** Makes contracts of every status. Three contracts begin at the same moment, so a page may end between two of them. */
function contracts(count: number) {
  return numbers(count).map((n) => {
    const status = SUBSCRIPTION_STATUSES[n % SUBSCRIPTION_STATUSES.length] ?? "ACTIVE";
    const isOver = status === "CANCELLED" || status === "EXPIRED";
    return subscription(n, {
      status,
      interval: INTERVALS[n % INTERVALS.length] ?? "MONTH",
      intervalCount: n,
      sellingPlanId: n % 2 === 0 ? null : "gid://shopify/SellingPlan/3",
      lines: n % 4 === 0 ? [] : [line, { ...line, title: `Blend ${NAMES[n % NAMES.length]}`, quantity: n }],
      nextBillingDate: isOver ? null : day(28),
      startedAt: day(1 + Math.floor(n / 3)),
      ...(isOver && { cancelledAt: day(25) }),
      ...(status === "CANCELLED" && { churnType: n % 2 === 0 ? "voluntary" : "involuntary" }),
      ...(n % 3 === 0 && { cyclesCompleted: n }),
      revision: String(n),
    });
  });
}

/** Makes a checkout order and some renewals of each contract, with every status. */
function orders(count: number) {
  return numbers(count).flatMap((n) => [
    order(n, 0, { source: "checkout", billedAt: day(1 + Math.floor(n / 3)) }),
    ...numbers(n % 4).map((cycle) => {
      const status = ORDER_STATUSES[(n + cycle) % ORDER_STATUSES.length] ?? "PAID";
      const failed = status === "FAILED" || status === "UNCOLLECTIBLE";
      return order(n, cycle, {
        status,
        billedAt: day(10 + cycle),
        shopifyId: failed || status === "SKIPPED" || status === "PENDING" ? null : gid.order(n * 1000 + cycle),
        ...(failed && {
          attemptCount: cycle + 1,
          reason: "card_declined",
          nextRetryAt: status === "FAILED" ? day(20) : null,
        }),
        ...(failed && { retriesExhausted: status === "UNCOLLECTIBLE" }),
      });
    }),
  ]);
}

/** Makes records of everything that a mirror stores, for the import at the start. */
export function history(count: number): object[] {
  return [...people(count), ...contracts(count), ...orders(count)];
}

/** Makes records of later changes. They cause events about a subscription and its orders. */
export function news(first: number): object[] {
  return [
    customer(first, { email: `news-${first}@example.com`, firstName: "News" }),
    subscription(first, { status: "ACTIVE", startedAt: day(20), nextBillingDate: day(27) }),
    order(first, 0, { source: "checkout", billedAt: day(20) }),
    order(first, 1, {
      status: "FAILED",
      billedAt: day(21),
      attemptCount: 1,
      reason: "insufficient_funds",
      shopifyId: null,
    }),
    order(first, 1, { status: "RECOVERED", billedAt: day(21), attemptCount: 2 }),
    order(first, 2, { status: "FAILED", billedAt: day(22), attemptCount: 1, reason: "card_declined", shopifyId: null }),
    subscription(first, { status: "CANCELLED", startedAt: day(20), nextBillingDate: null, cancelledAt: day(23) }),
  ];
}

/** Makes occurrences. Posting them again changes nothing, because their ids are known. */
export function occurrences(n: number): object[] {
  const earned = { milestone: 5, earned_by: "Ada <ada@example.com>", ratio: 1.5, nested: { list: [1, null, "é"] } };
  return [
    reward(`reward-${n}`, { customer: gid.customer(n), ...earned }),
    cancelFlow(`flow-${n}`, { subscription: gid.contract(n), offer_type: "discount", accepted: true }),
  ];
}
