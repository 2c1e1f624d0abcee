import { type Event, orderEvents } from "../events/event.ts";
import type { BillingAttempt, BillingCycleRecord, OrderMoney } from "../records/platform-records.ts";
import type { Order, Subscription } from "../resources.ts";
import { afterDecline } from "../retry-plan.ts";
import type { OrderRow, SubscriptionRow } from "../rows.ts";
import { customerGidOf, isCharged, isDeclined, orderDecision, orderOf } from "./order.ts";
import { type Decision, type MirrorView, NOTHING, unknownContract } from "./snapshot.ts";
import { isOlder } from "./subscription.ts";

/** Contract statuses in which declined orders are not tried again. */
const ENDED_STATUSES = new Set<Subscription["status"]>(["PAYMENT_FAILED", "CANCELLED", "EXPIRED"]);

/**
 * Mirrors a billing cycle of the platform as an order. The record has all attempts of the cycle. The mirror has counted
 * the attempts that the platform or the intake reported before. Only the attempts beyond this count are new.
 */
export function decideBillingCycle(mirror: MirrorView, given: BillingCycleRecord): Decision {
  const contract = mirror.subscription(mirror.ids.subscription(given.subscription));
  if (contract === undefined) return unknownContract(given.subscription);
  const isOutdated = isOlder(given.revision, contract.revision);
  const record = isOutdated ? { ...given, contractEnded: ENDED_STATUSES.has(contract.resource.status) } : given;
  const id = mirror.ids.order(record.subscription, record.source, record.cycleNumber);
  const before = mirror.order(id);
  // The mirror adds the order at the first attempt or at a skip.
  if (before === undefined && record.attempts.length === 0 && !record.skipped) return NOTHING;

  const attempts = record.attempts.toSorted((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt));
  const beganAt = attempts[0]?.startedAt ?? record.expectedAt;
  // Two processes can number two cycles at the same time, and choose the same number. The second record is refused.
  if (record.isNew === true && before !== undefined && before.resource.billedAt !== beganAt)
    return {
      refused: { field: "cycleNumber", reason: `has the number of another order by now: ${record.cycleNumber}` },
    };
  const ended = upToCharge(attempts.filter(({ endedAt }) => endedAt !== null).toSorted((a, b) => endOf(a) - endOf(b)));
  const charge = ended.find(isCharge);
  const knownAttempts = before?.platformAttempts ?? 0;
  const charged = before?.charged === true || charge !== undefined;
  const retryState = retryStateAfter(before, ended, record);
  const waiting = attempts.at(-1)?.outcome.kind === "waiting";
  const chargedOrder = charge?.outcome.order;
  // If the platform no longer shows the charged order, the mirror keeps the stored money.
  const stored = chargedOrder === undefined || chargedOrder.shopifyId === null ? moneyBefore(before) : undefined;
  const unpaid = { shopifyId: before?.resource.shopifyId ?? null, ...record.expected };
  const money = stored ?? chargedOrder ?? unpaid;
  const status = charged
    ? chargedStatus(before, retryState.declined)
    : openStatus(before, retryState, {
        waiting,
        skipped: record.skipped,
        outdated: ended.length < knownAttempts,
        abandoned: record.contractEnded && ended.length > 0,
        voided: attempts.at(-1)?.outcome.kind === "voided",
      });
  const after: OrderRow = {
    kind: "order",
    resource: orderOf(contract, {
      ...money,
      id,
      source: record.source,
      cycleNumber: record.cycleNumber,
      status,
      billedAt: before?.resource.billedAt ?? beganAt,
    }),
    attemptCount: retryState.attemptCount,
    reason: retryState.reason,
    nextRetryAt: charged ? null : retryState.nextRetryAt,
    retriesExhausted: charged ? null : plannedExhaustion(before, retryState, status),
    platformAttempts: Math.max(knownAttempts, ended.length),
    declined: retryState.declined,
    charged,
  };
  return orderDecision(contract, before, after, () =>
    eventsOf(contract, { before, after, ended, charge, record }, customerGidOf(mirror, contract)),
  );
}

interface OrderChange {
  before: OrderRow | undefined;
  after: OrderRow;
  ended: readonly BillingAttempt[];
  charge: Charge | undefined;
  record: BillingCycleRecord;
}

/** Returns one event for each new attempt, with the order as it was after that attempt. */
function eventsOf(
  contract: SubscriptionRow,
  { before, after, ended, charge, record }: OrderChange,
  customer: string,
): Event[] {
  const knownCount = Math.max(before?.platformAttempts ?? 0, before?.attemptCount ?? 0);
  const resource: Order = {
    ...after.resource,
    shopifyId: null,
    status: "FAILED",
    totalCents: totalOf(record.expected),
  };
  const isAbandoned = record.contractEnded && after.resource.status === "UNCOLLECTIBLE";
  const events: Event[] = [];
  let declinedPayments = 0;
  for (const [index, attempt] of ended.entries()) {
    const attemptCount = index + 1;
    const at = endOf(attempt);
    if (attempt === charge && before?.charged !== true) {
      events.push(...orderEvents(contract, "charged", after, customer).map((event) => ({ ...event, at })));
    }
    if (!isDecline(attempt)) continue;
    if (!attempt.outcome.outOfStock) declinedPayments += 1;
    // The intake may have reported this attempt already.
    if (attemptCount <= knownCount) continue;
    const orderThen: OrderRow = {
      ...after,
      resource,
      ...retryStateOf(attempt, attemptCount, declinedPayments, record),
      ...(isAbandoned && attemptCount === ended.length && { nextRetryAt: null, retriesExhausted: true }),
    };
    events.push(...orderEvents(contract, "declined", orderThen, customer).map((event) => ({ ...event, at })));
  }
  return events;
}

type Charge = BillingAttempt & { outcome: { kind: "charged" } };

type Decline = BillingAttempt & { outcome: { kind: "declined" } };

function isDecline(attempt: BillingAttempt): attempt is Decline {
  return attempt.outcome.kind === "declined";
}

function isCharge(attempt: BillingAttempt): attempt is Charge {
  return attempt.outcome.kind === "charged";
}

/** Drops the attempts after the charge. The platform declines them only because the order is already charged. */
function upToCharge(ended: readonly BillingAttempt[]): readonly BillingAttempt[] {
  const index = ended.findIndex(isCharge);
  return index === -1 ? ended : ended.slice(0, index + 1);
}

function endOf({ startedAt, endedAt }: BillingAttempt): number {
  return Date.parse(endedAt ?? startedAt);
}

type RetryState = Pick<OrderRow, "attemptCount" | "reason" | "nextRetryAt" | "retriesExhausted" | "declined">;

/**
 * Returns the order's state after its attempts. After a new attempt, the retry plan decides. Without a new attempt, the
 * stored state stays: the intake may have given more details than the platform.
 */
function retryStateAfter(
  before: OrderRow | undefined,
  ended: readonly BillingAttempt[],
  record: BillingCycleRecord,
): RetryState {
  if (before !== undefined && before.attemptCount >= ended.length) {
    const { attemptCount, reason, nextRetryAt, retriesExhausted, declined } = before;
    return { attemptCount, reason, nextRetryAt, retriesExhausted, declined };
  }
  const last = ended.findLast(isDecline);
  if (last === undefined) {
    const declined = before?.declined === true;
    return { attemptCount: ended.length, reason: null, nextRetryAt: null, retriesExhausted: null, declined };
  }
  const declinedPayments = ended.filter((attempt) => isDecline(attempt) && !attempt.outcome.outOfStock).length;
  return retryStateOf(last, ended.length, declinedPayments, record);
}

/** Returns the order's state after a declined attempt. @param declinedPayments see `afterDecline` */
function retryStateOf(
  decline: Decline,
  attemptCount: number,
  declinedPayments: number,
  { retryPlan }: BillingCycleRecord,
): RetryState {
  const { reason } = decline.outcome;
  return { attemptCount, reason, ...afterDecline(retryPlan, declinedPayments, endOf(decline)), declined: true };
}

function chargedStatus(before: OrderRow | undefined, declined: boolean): Order["status"] {
  if (before !== undefined && isCharged(before.resource.status)) return before.resource.status;
  return declined ? "RECOVERED" : "PAID";
}

interface OpenCycle {
  /** Whether the last attempt has not ended yet. */
  waiting: boolean;
  skipped: boolean;
  /** Whether an earlier record of the cycle had more attempts. */
  outdated: boolean;
  /** Whether the contract has ended. Declined attempts are not tried again then. */
  abandoned: boolean;
  /** Whether the payment of the checkout was cancelled. */
  voided: boolean;
}

function openStatus(
  before: OrderRow | undefined,
  retryState: RetryState,
  { waiting, skipped, outdated, abandoned, voided }: OpenCycle,
): Order["status"] {
  const { attemptCount, declined, retriesExhausted } = retryState;
  if (outdated && before !== undefined) return before.resource.status;
  if (waiting) return "PENDING";
  if (voided) return "UNCOLLECTIBLE";
  if (!declined) return skipped && attemptCount === 0 ? "SKIPPED" : "PENDING";
  if (abandoned) return "UNCOLLECTIBLE";
  const isKnown = before?.attemptCount === attemptCount && isDeclined(before.resource.status);
  // If an UNCOLLECTIBLE order has retries left, its retries stopped only because its contract ended. The contract is
  // active again, so the retries continue.
  const isResumed = before?.resource.status === "UNCOLLECTIBLE" && retriesExhausted === false;
  if (isKnown && !isResumed) return before.resource.status;
  return retriesExhausted === true ? "UNCOLLECTIBLE" : "FAILED";
}

/**
 * Whether the retry plan is used up; null if unknown. The end of the contract does not use up the plan, because the
 * contract can become active again. If an order becomes uncollectible, an unknown plan counts as not used up. So
 * `openStatus` can continue the order when the contract is active again.
 */
function plannedExhaustion(
  before: OrderRow | undefined,
  { retriesExhausted }: RetryState,
  status: Order["status"],
): boolean | null {
  const becomesUncollectible = status === "UNCOLLECTIBLE" && before?.resource.status !== "UNCOLLECTIBLE";
  return retriesExhausted ?? (becomesUncollectible ? false : null);
}

/** Returns the stored money of a charged order. An older record must not change this money. */
function moneyBefore(before: OrderRow | undefined): (OrderMoney & { shopifyId: string | null }) | undefined {
  return before?.charged === true ? before.resource : undefined;
}

function totalOf({ subtotalCents, discountCents, creditsCents }: OrderMoney): number {
  return subtotalCents - discountCents - creditsCents;
}
