import { customerId, orderId, subscriptionId } from "./ids.ts";
import type { CancelFlowRecord, CustomerRecord, MirrorRecord, OrderRecord, RedactionRecord, Refusal, RewardRecord, SubscriptionRecord } from "./records.ts";
import type { Customer, Order, Subscription } from "./resources.ts";
import { isoUtc } from "./time.ts";

/** A mirrored customer: what is served, and what the mirror has to remember beside it. */
export interface CustomerRow {
  kind: "customer";
  resource: Customer;
  /** How recent the platform's word on the profile and on the consent is, epoch milliseconds; null where only the intake spoke. */
  profileAsOf: number | null;
  consentAsOf: number | null;
}

export interface SubscriptionRow {
  kind: "subscription";
  resource: Subscription;
  revision: string | null;
  churnType: "voluntary" | "involuntary" | null;
  /** Whether cyclesCompleted is the source's own figure; if not, it is `renewals`. */
  cyclesGiven: boolean;
  /** PAID and RECOVERED recurring orders. */
  renewals: number;
}

export interface OrderRow {
  kind: "order";
  resource: Order;
  attemptCount: number | null;
  reason: string | null;
  nextRetryAt: string | null;
  retriesExhausted: boolean | null;
}

/** Something that happened once, known by the sender's own id: a reward or the end of a cancellation flow. */
export interface OccurrenceRow {
  kind: "occurrence";
  record: RewardRecord | CancelFlowRecord;
}

export type Row = CustomerRow | SubscriptionRow | OrderRow | OccurrenceRow;

/** The mirror of one shop as it stands before a record. */
export interface MirrorView {
  domain: string;
  customer(id: string): CustomerRow | undefined;
  subscription(id: string): SubscriptionRow | undefined;
  order(id: string): OrderRow | undefined;
  hasOccurrence(type: "reward" | "cancel_flow", id: string): boolean;
}

/** The rows a record makes different, none if it says nothing new; or why it can't be applied. */
export type Decision = { rows: Row[] } | { refused: Refusal };

/**
 * What a record does to the mirror. Pure: the store calls it between its reads and its writes, whichever engine it is.
 * @param now epoch milliseconds
 */
export function decide(before: MirrorView, record: MirrorRecord, now: number): Decision {
  switch (record.type) {
    case "customer":
      return decideCustomer(before, record, now);
    case "subscription":
      return decideSubscription(before, record, now);
    case "order":
      return decideOrder(before, record);
    case "reward":
      return decideReward(before, record, now);
    case "cancel_flow":
      return decideCancelFlow(before, record);
    case "redaction":
      return decideRedaction(before, record);
  }
}

/** An absent field keeps what is stored. */
function keep<T>(given: T | undefined, stored: T): T {
  return given === undefined ? stored : given;
}

function differs(before: Row | undefined, after: Row): boolean {
  return before === undefined || JSON.stringify(before) !== JSON.stringify(after);
}

function emptyCustomer(domain: string, gid: string, now: number): CustomerRow {
  return {
    kind: "customer",
    resource: {
      id: customerId(domain, gid),
      shopifyId: gid,
      email: null,
      firstName: null,
      lastName: null,
      marketingConsent: false,
      creditsCents: 0,
      loyaltyTier: 0,
      subscriptionCount: 0,
      createdAt: isoUtc(now),
    },
    profileAsOf: null,
    consentAsOf: null,
  };
}

function decideCustomer(mirror: MirrorView, record: CustomerRecord, now: number): Decision {
  const before = mirror.customer(customerId(mirror.domain, record.shopifyId));
  const base = before ?? emptyCustomer(mirror.domain, record.shopifyId, now);
  const { asOf } = record;
  const outdated = (known: number | null) => asOf !== undefined && known !== null && asOf < known;
  const speaksOfProfile = record.email !== undefined || record.firstName !== undefined || record.lastName !== undefined;
  const takesProfile = speaksOfProfile && !outdated(base.profileAsOf);
  const takesConsent = record.marketingConsent !== undefined && !outdated(base.consentAsOf);
  const { resource } = base;
  const after: CustomerRow = {
    kind: "customer",
    resource: {
      ...resource,
      ...(takesProfile && {
        email: keep(record.email, resource.email),
        firstName: keep(record.firstName, resource.firstName),
        lastName: keep(record.lastName, resource.lastName),
      }),
      ...(takesConsent && { marketingConsent: record.marketingConsent ?? false }),
      creditsCents: keep(record.creditsCents, resource.creditsCents) ?? 0,
      loyaltyTier: keep(record.loyaltyTier, resource.loyaltyTier) ?? 0,
    },
    profileAsOf: takesProfile && asOf !== undefined ? asOf : base.profileAsOf,
    consentAsOf: takesConsent && asOf !== undefined ? asOf : base.consentAsOf,
  };
  return { rows: differs(before, after) ? [after] : [] };
}

function withSubscriptions(row: CustomerRow, difference: number): CustomerRow {
  const subscriptionCount = row.resource.subscriptionCount + difference;
  return { ...row, resource: { ...row.resource, subscriptionCount } };
}

function decideSubscription(mirror: MirrorView, record: SubscriptionRecord, now: number): Decision {
  const id = subscriptionId(mirror.domain, record.shopifyId);
  const before = mirror.subscription(id);
  if (isOlder(record.revision, before?.revision)) return { rows: [] };

  const ownerId = customerId(mirror.domain, record.customer);
  const after = subscriptionAfter(before, record, id, ownerId, now);
  const rows: Row[] = differs(before, after) ? [after] : [];
  const previousOwnerId = before?.resource.customerId;
  if (previousOwnerId !== ownerId) {
    const owner = mirror.customer(ownerId) ?? emptyCustomer(mirror.domain, record.customer, now);
    rows.push(withSubscriptions(owner, 1));
    const previousOwner = previousOwnerId === undefined ? undefined : mirror.customer(previousOwnerId);
    if (previousOwner !== undefined) rows.push(withSubscriptions(previousOwner, -1));
  }
  return { rows };
}

/** Revisions are decimal strings of any length, increasing but with gaps: compared as numbers. */
function isOlder(given: string | null | undefined, stored: string | null | undefined): boolean {
  return typeof given === "string" && typeof stored === "string" && BigInt(given) < BigInt(stored);
}

function subscriptionAfter(before: SubscriptionRow | undefined, record: SubscriptionRecord, id: string, ownerId: string, now: number): SubscriptionRow {
  const stored = before?.resource;
  const renewals = before?.renewals ?? 0;
  const { status } = record;
  const over = status === "CANCELLED" || status === "EXPIRED";
  const cyclesGiven = record.cyclesCompleted === undefined ? (before?.cyclesGiven ?? false) : record.cyclesCompleted !== null;
  return {
    kind: "subscription",
    resource: {
      id,
      shopifyId: record.shopifyId,
      customerId: ownerId,
      status,
      interval: record.interval,
      intervalCount: record.intervalCount,
      sellingPlanId: record.sellingPlanId,
      lines: record.lines,
      nextBillingDate: over ? null : record.nextBillingDate,
      cyclesCompleted: cyclesGiven ? (record.cyclesCompleted ?? stored?.cyclesCompleted ?? renewals) : renewals,
      startedAt: stored?.startedAt ?? record.startedAt,
      cancelledAt: keep(record.cancelledAt, impliedCancellation(stored, status, now)),
    },
    revision: keep(record.revision, before?.revision ?? null),
    churnType: keep(record.churnType, before?.churnType ?? null),
    cyclesGiven,
    renewals,
  };
}

/**
 * The cancellation date where the source gives none: now, if the mirror sees the contract being cancelled; unknown, if it was
 * cancelled before the mirror first saw it; none, if it lives again.
 */
function impliedCancellation(stored: Subscription | undefined, status: Subscription["status"], now: number): string | null {
  if (stored === undefined) return null;
  if (stored.status !== "CANCELLED" && status === "CANCELLED") return isoUtc(now);
  if (stored.status === "CANCELLED" && status !== "CANCELLED") return null;
  return stored.cancelledAt;
}

function isRenewal(order: Order | undefined): boolean {
  return order?.source === "recurring" && (order.status === "PAID" || order.status === "RECOVERED");
}

function decideOrder(mirror: MirrorView, record: OrderRecord): Decision {
  const contract = mirror.subscription(subscriptionId(mirror.domain, record.subscription));
  if (contract === undefined) return unknownContract(record.subscription);
  const id = orderId(mirror.domain, record.subscription, record.source, record.cycleNumber);
  const before = mirror.order(id);
  const after: OrderRow = {
    kind: "order",
    resource: {
      id,
      shopifyId: record.shopifyId,
      contractId: contract.resource.id,
      customerId: contract.resource.customerId,
      source: record.source,
      cycleNumber: record.cycleNumber,
      status: record.status,
      lines: record.lines,
      subtotalCents: record.subtotalCents,
      discountCents: record.discountCents,
      creditsCents: record.creditsCents,
      totalCents: record.subtotalCents - record.discountCents - record.creditsCents,
      billedAt: before?.resource.billedAt ?? record.billedAt,
    },
    attemptCount: keep(record.attemptCount, before?.attemptCount ?? null),
    reason: keep(record.reason, before?.reason ?? null),
    nextRetryAt: keep(record.nextRetryAt, before?.nextRetryAt ?? null),
    retriesExhausted: keep(record.retriesExhausted, before?.retriesExhausted ?? null),
  };
  if (!differs(before, after)) return { rows: [] };
  const difference = Number(isRenewal(after.resource)) - Number(isRenewal(before?.resource));
  return { rows: difference === 0 ? [after] : [after, withRenewals(contract, difference)] };
}

function withRenewals(row: SubscriptionRow, difference: number): SubscriptionRow {
  const renewals = row.renewals + difference;
  const cyclesCompleted = row.cyclesGiven ? row.resource.cyclesCompleted : renewals;
  return { ...row, resource: { ...row.resource, cyclesCompleted }, renewals };
}

function unknownContract(gid: string): Decision {
  return { refused: { field: "subscription", reason: `names a contract that is not in the mirror: ${gid}` } };
}

function decideReward(mirror: MirrorView, record: RewardRecord, now: number): Decision {
  if (mirror.hasOccurrence("reward", record.id)) return { rows: [] };
  const known = mirror.customer(customerId(mirror.domain, record.customer)) !== undefined;
  const rows: Row[] = [{ kind: "occurrence", record }];
  if (!known) rows.push(emptyCustomer(mirror.domain, record.customer, now));
  return { rows };
}

function decideCancelFlow(mirror: MirrorView, record: CancelFlowRecord): Decision {
  if (mirror.hasOccurrence("cancel_flow", record.id)) return { rows: [] };
  const known = mirror.subscription(subscriptionId(mirror.domain, record.subscription)) !== undefined;
  return known ? { rows: [{ kind: "occurrence", record }] } : unknownContract(record.subscription);
}

function decideRedaction(mirror: MirrorView, record: RedactionRecord): Decision {
  const before = mirror.customer(customerId(mirror.domain, record.shopifyId));
  if (before === undefined) return { rows: [] };
  const resource = { ...before.resource, email: null, firstName: null, lastName: null };
  const after: CustomerRow = { ...before, resource, profileAsOf: Math.max(record.asOf, before.profileAsOf ?? 0) };
  return { rows: differs(before, after) ? [after] : [] };
}
