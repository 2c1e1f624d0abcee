import { type Event, orderEvents } from "../events/event.ts";
import type { OrderRecord } from "../records/record-schemas.ts";
import type { Order } from "../resources.ts";
import type { OrderRow, SubscriptionRow } from "../rows.ts";
import { type Decision, differs, keep, type MirrorView, NOTHING, unknownContract } from "./snapshot.ts";

function isRenewal(order: Order | undefined): boolean {
  return order?.source === "recurring" && isCharged(order.status);
}

/** Whether the order was paid, at once or after a decline. */
export function isCharged(status: Order["status"] | undefined): boolean {
  return status === "PAID" || status === "RECOVERED";
}

/** Whether the last attempt was declined. */
export function isDeclined(status: Order["status"] | undefined): boolean {
  return status === "FAILED" || status === "UNCOLLECTIBLE";
}

/** Applies an order that the billing system reported, and counts the contract's cycles. Refuses an unknown contract. */
export function decideOrder(mirror: MirrorView, record: OrderRecord): Decision {
  const contract = mirror.subscription(mirror.ids.subscription(record.subscription));
  if (contract === undefined) return unknownContract(record.subscription);
  const id = mirror.ids.order(record.subscription, record.source, record.cycleNumber);
  const before = mirror.order(id);
  const outcome = newOutcome(before, record);
  const after: OrderRow = {
    kind: "order",
    resource: orderOf(contract, { ...record, id, billedAt: before?.resource.billedAt ?? record.billedAt }),
    attemptCount: record.attemptCount ?? countedBefore(before, record) + (outcome === undefined ? 0 : 1),
    reason: keep(record.reason, before?.reason ?? null),
    nextRetryAt: keep(record.nextRetryAt, before?.nextRetryAt ?? null),
    retriesExhausted: keep(record.retriesExhausted, before?.retriesExhausted ?? null),
    platformAttempts: before?.platformAttempts ?? 0,
    declined: before?.declined === true || isDeclined(record.status) || record.status === "RECOVERED",
    charged: before?.charged === true || isCharged(record.status),
  };
  return orderDecision(contract, before, after, () =>
    orderEvents(contract, outcome, after, customerGidOf(mirror, contract)),
  );
}

/** Adds the contract's ids and the total to an order's fields. The API serves the fields in this sequence. */
export function orderOf(
  { resource: { id: contractId, customerId } }: SubscriptionRow,
  fields: Omit<Order, "contractId" | "customerId" | "totalCents">,
): Order {
  const { id, shopifyId, source, cycleNumber, status, lines, subtotalCents, discountCents, creditsCents } = fields;
  const totalCents = subtotalCents - discountCents - creditsCents;
  const money = { subtotalCents, discountCents, creditsCents, totalCents };
  const identity = { id, shopifyId, contractId, customerId, source, cycleNumber };
  return { ...identity, status, lines, ...money, billedAt: fields.billedAt };
}

/** Decides to write the order, and the contract if it changes too. @param events called only if the order changes */
export function orderDecision(
  contract: SubscriptionRow,
  before: OrderRow | undefined,
  after: OrderRow,
  events: () => Event[],
): Decision {
  if (!differs(before, after)) return NOTHING;
  const contractAfter = withOrder(contract, before?.resource, after.resource);
  return { rows: differs(contract, contractAfter) ? [after, contractAfter] : [after], events: events() };
}

/** Returns the gid of a contract's customer. The customer's row exists: both are written together. */
export function customerGidOf(mirror: MirrorView, { resource }: SubscriptionRow): string {
  return mirror.customer(resource.customerId)?.resource.shopifyId ?? "";
}

/**
 * Returns the outcome of a new attempt; undefined if the record brings no new attempt. Only the first success is new.
 * The first decline is new. A later decline is new if the source counts more attempts than before. If the source does
 * not count attempts, a decline is new if it differs from the stored order.
 */
function newOutcome(before: OrderRow | undefined, record: OrderRecord): "charged" | "declined" | undefined {
  if (isCharged(record.status)) return before?.charged === true ? undefined : "charged";
  if (!isDeclined(record.status)) return undefined;
  if (before === undefined) return "declined";
  const counted = typeof record.attemptCount === "number" && (before.declined || before.charged);
  if (counted) return (record.attemptCount ?? 0) > before.attemptCount ? "declined" : undefined;
  // The platform has counted the attempts, and this source does not count. So the record only adds details to the last
  // attempt.
  if (before.platformAttempts > 0) return undefined;
  if (!isDeclined(before.resource.status)) return "declined";
  const given = [
    record.status,
    keep(record.reason, before.reason),
    keep(record.nextRetryAt, before.nextRetryAt),
    keep(record.retriesExhausted, before.retriesExhausted),
  ];
  const stored = [before.resource.status, before.reason, before.nextRetryAt, before.retriesExhausted];
  return given.some((value, index) => value !== stored[index]) ? "declined" : undefined;
}

/**
 * Returns the number of attempts before the record, for a source that does not count attempts. If no order is stored, a
 * recovered order counts as one attempt, because at least one attempt failed.
 */
function countedBefore(before: OrderRow | undefined, record: OrderRecord): number {
  return before?.attemptCount ?? (record.status === "RECOVERED" ? 1 : 0);
}

/** Returns the contract with an updated number of completed cycles and an updated last order. */
function withOrder(row: SubscriptionRow, before: Order | undefined, after: Order): SubscriptionRow {
  const renewals = row.renewals + Number(isRenewal(after)) - Number(isRenewal(before));
  const cyclesCompleted = row.cyclesGiven ? row.resource.cyclesCompleted : renewals;
  const billedAt = Date.parse(after.billedAt);
  const isLast = row.lastOrderAt === null || billedAt >= row.lastOrderAt;
  const last = isLast ? { lastOrderAt: billedAt, lastOrderStatus: after.status } : {};
  return { ...row, resource: { ...row.resource, cyclesCompleted }, renewals, ...last };
}
