import { orderEvents } from "./event.ts";
import { orderId, subscriptionId } from "./ids.ts";
import { isCharged, isDeclined, ownerOf, withOrder } from "./order.ts";
import type { BillingAttempt, BillingCycleRecord, OrderMoney } from "./platform-records.ts";
import type { Order } from "./resources.ts";
import { afterDecline } from "./retry-plan.ts";
import { type Decision, differs, type MirrorView, NOTHING, type OrderRow, unknownContract } from "./state.ts";

/**
 * A cycle of the platform as an order. The record has all attempts, so what is new is told by counting: the attempts beyond those that the mirror
 * counted already, whoever told of them, happened since.
 */
export function decideBillingCycle(mirror: MirrorView, record: BillingCycleRecord): Decision {
  const contract = mirror.subscription(subscriptionId(mirror.domain, record.subscription));
  if (contract === undefined) return unknownContract(record.subscription);
  const id = orderId(mirror.domain, record.subscription, record.source, record.cycleNumber);
  const before = mirror.order(id);
  // Nothing happened in it yet: it is no order.
  if (before === undefined && record.attempts.length === 0 && !record.skipped) return NOTHING;

  const attempts = record.attempts.toSorted((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt));
  const ended = attempts.filter(({ endedAt }) => endedAt !== null).toSorted((a, b) => endOf(a) - endOf(b));
  const charge = ended.find(isCharge);
  const told = before?.platformAttempts ?? 0;
  const charged = before?.charged === true || charge !== undefined;
  const retryState = retryStateAfter(before, ended, record);
  const waiting = attempts.at(-1)?.outcome.kind === "waiting";
  const { shopifyId, ...money } = charge?.outcome.order ?? moneyBefore(before) ?? { shopifyId: before?.resource.shopifyId ?? null, ...record.expected };
  const after: OrderRow = {
    kind: "order",
    resource: {
      id,
      shopifyId,
      contractId: contract.resource.id,
      customerId: contract.resource.customerId,
      source: record.source,
      cycleNumber: record.cycleNumber,
      status: charged
        ? chargedStatus(before, retryState.declined)
        : openStatus(before, retryState, { waiting, skipped: record.skipped, outdated: ended.length < told }),
      lines: money.lines,
      subtotalCents: money.subtotalCents,
      discountCents: money.discountCents,
      creditsCents: money.creditsCents,
      totalCents: totalOf(money),
      billedAt: before?.resource.billedAt ?? attempts[0]?.startedAt ?? record.expectedAt,
    },
    attemptCount: retryState.attemptCount,
    reason: retryState.reason,
    nextRetryAt: charged ? null : retryState.nextRetryAt,
    retriesExhausted: charged ? null : retryState.retriesExhausted,
    platformAttempts: Math.max(told, ended.length),
    declined: retryState.declined,
    charged,
  };
  if (!differs(before, after)) return NOTHING;

  const owner = ownerOf(mirror, contract);
  const events = ended.flatMap((attempt, index) => {
    const count = index + 1;
    const at = endOf(attempt);
    if (attempt === charge && before?.charged !== true) return orderEvents(contract, "charged", after, owner).map((event) => ({ ...event, at }));
    // The intake may have told of it already.
    if (attempt.outcome.kind !== "declined" || count <= Math.max(told, before?.attemptCount ?? 0)) return [];
    const resource: Order = { ...after.resource, shopifyId: null, status: "FAILED", totalCents: totalOf(record.expected) };
    const then: OrderRow = { ...after, resource, ...retryStateAfter(undefined, ended.slice(0, count), record), attemptCount: count };
    return orderEvents(contract, "declined", then, owner).map((event) => ({ ...event, at }));
  });
  const contractAfter = withOrder(contract, before?.resource, after.resource);
  return { rows: differs(contract, contractAfter) ? [after, contractAfter] : [after], events };
}

type Charge = BillingAttempt & { outcome: { kind: "charged" } };

function isCharge(attempt: BillingAttempt): attempt is Charge {
  return attempt.outcome.kind === "charged";
}

function endOf({ startedAt, endedAt }: BillingAttempt): number {
  return Date.parse(endedAt ?? startedAt);
}

type RetryState = Pick<OrderRow, "attemptCount" | "reason" | "nextRetryAt" | "retriesExhausted" | "declined">;

/** How the attempts left the order: as it was known, if all of them were, for the intake may have said more of them; else as the retry plan has it. */
function retryStateAfter(before: OrderRow | undefined, ended: readonly BillingAttempt[], { retryPlan }: BillingCycleRecord): RetryState {
  if (before !== undefined && before.attemptCount >= ended.length) {
    const { attemptCount, reason, nextRetryAt, retriesExhausted, declined } = before;
    return { attemptCount, reason, nextRetryAt, retriesExhausted, declined };
  }
  const declines = ended.filter(({ outcome }) => outcome.kind === "declined");
  const last = declines.at(-1);
  const declined = last !== undefined || before?.declined === true;
  if (last?.outcome.kind !== "declined") return { attemptCount: ended.length, reason: null, nextRetryAt: null, retriesExhausted: null, declined };
  const next = afterDecline(retryPlan, declines.length, endOf(last));
  return { attemptCount: ended.length, reason: last.outcome.reason, ...next, declined };
}

function chargedStatus(before: OrderRow | undefined, declined: boolean): Order["status"] {
  if (before !== undefined && isCharged(before.resource.status)) return before.resource.status;
  return declined ? "RECOVERED" : "PAID";
}

interface Reading {
  /** Its last attempt has no end yet. */
  waiting: boolean;
  skipped: boolean;
  /** It knows of fewer attempts than another before it. */
  outdated: boolean;
}

function openStatus(before: OrderRow | undefined, retryState: RetryState, { waiting, skipped, outdated }: Reading): Order["status"] {
  const { attemptCount, declined, retriesExhausted } = retryState;
  if (outdated && before !== undefined) return before.resource.status;
  if (waiting) return "PENDING";
  if (declined && before?.attemptCount === attemptCount && isDeclined(before.resource.status)) return before.resource.status;
  if (declined) return retriesExhausted === true ? "UNCOLLECTIBLE" : "FAILED";
  return skipped && attemptCount === 0 ? "SKIPPED" : "PENDING";
}

/** Of what was charged already, where the record comes from a time before. */
function moneyBefore(before: OrderRow | undefined): (OrderMoney & { shopifyId: string | null }) | undefined {
  if (before?.charged !== true) return undefined;
  const { shopifyId, lines, subtotalCents, discountCents, creditsCents } = before.resource;
  return { shopifyId, lines, subtotalCents, discountCents, creditsCents };
}

function totalOf({ subtotalCents, discountCents, creditsCents }: OrderMoney): number {
  return subtotalCents - discountCents - creditsCents;
}
