import { isoUtc } from "../../lib/time.ts";
import { subscriptionEvents } from "../events/event.ts";
import type { SubscriptionRecord } from "../records/record-schemas.ts";
import type { Subscription } from "../resources.ts";
import type { Row, SubscriptionRow } from "../rows.ts";
import { emptyCustomer, withSubscriptions } from "./customer.ts";
import { type Decision, differs, keep, type MirrorView, NOTHING } from "./snapshot.ts";

/** Applies a contract, and updates the contract counts of its new and previous customer. Ignores older revisions. */
export function decideSubscription(mirror: MirrorView, record: SubscriptionRecord, now: number): Decision {
  const id = mirror.ids.subscription(record.shopifyId);
  const before = mirror.subscription(id);
  if (isOlder(record.revision, before?.revision)) return NOTHING;

  const customerId = mirror.ids.customer(record.customer);
  const after = subscriptionAfter(before, record, id, customerId, now);
  const rows: Row[] = differs(before, after) ? [after] : [];
  const previousCustomerId = before?.resource.customerId;
  if (previousCustomerId !== customerId) {
    const customer = mirror.customer(customerId) ?? emptyCustomer(mirror.ids, record.customer, now);
    rows.push(withSubscriptions(customer, 1));
    const previousCustomer = previousCustomerId === undefined ? undefined : mirror.customer(previousCustomerId);
    if (previousCustomer !== undefined) rows.push(withSubscriptions(previousCustomer, -1));
  }
  return { rows, events: subscriptionEvents(before, after, record.customer) };
}

/** Whether `given` is older than `stored`. Revisions are whole numbers of any length, as strings. */
export function isOlder(given: string | null | undefined, stored: string | null | undefined): boolean {
  return typeof given === "string" && typeof stored === "string" && BigInt(given) < BigInt(stored);
}

function subscriptionAfter(
  before: SubscriptionRow | undefined,
  record: SubscriptionRecord,
  id: string,
  customerId: string,
  now: number,
): SubscriptionRow {
  const stored = before?.resource;
  const renewals = before?.renewals ?? 0;
  const { status } = record;
  const hasEnded = status === "CANCELLED" || status === "EXPIRED";
  const cyclesGiven =
    record.cyclesCompleted === undefined ? (before?.cyclesGiven ?? false) : record.cyclesCompleted !== null;
  return {
    kind: "subscription",
    resource: {
      id,
      shopifyId: record.shopifyId,
      customerId,
      status,
      interval: record.interval,
      intervalCount: record.intervalCount,
      sellingPlanId: record.sellingPlanId,
      lines: record.lines,
      nextBillingDate: hasEnded ? null : record.nextBillingDate,
      cyclesCompleted: cyclesGiven ? (record.cyclesCompleted ?? stored?.cyclesCompleted ?? renewals) : renewals,
      startedAt: stored?.startedAt ?? record.startedAt,
      cancelledAt: keep(record.cancelledAt, impliedCancellation(stored, status, now)),
    },
    revision: keep(record.revision, before?.revision ?? null),
    // The churn type of a cancellation does not apply to the next cancellation.
    churnType: keep(record.churnType, status === "CANCELLED" ? (before?.churnType ?? null) : null),
    cyclesGiven,
    renewals,
    lastOrderAt: before?.lastOrderAt ?? null,
    lastOrderStatus: before?.lastOrderStatus ?? null,
  };
}

/**
 * Returns the cancellation date of a contract whose source gives no date. The date is now if the status becomes
 * CANCELLED. It is null if the contract is reactivated. It is also null if the contract was already cancelled when the
 * mirror first saw it.
 */
function impliedCancellation(
  stored: Subscription | undefined,
  status: Subscription["status"],
  now: number,
): string | null {
  if (stored === undefined) return null;
  if (status === "CANCELLED" && stored.status !== "CANCELLED") return stored.cancelledAt ?? isoUtc(now);
  return stored.status === "CANCELLED" && status !== "CANCELLED" && status !== "EXPIRED" ? null : stored.cancelledAt;
}
