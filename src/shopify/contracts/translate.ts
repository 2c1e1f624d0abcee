import type { BillingAttempt, OrderMoney } from "../../domain/records/platform-records.ts";
import type { CustomerRecord, SubscriptionRecord } from "../../domain/records/record-schemas.ts";
import { parseRecord } from "../../domain/records/records.ts";
import type { AttemptNode } from "../api/operations/attempts.ts";
import type { ContractLineNode, ContractNode } from "../api/operations/contracts.ts";
import type { CustomerNode } from "../api/operations/customers.ts";
import type { OrderNode } from "../api/operations/orders.ts";
import { contractLines, type Rate } from "./money.ts";
import { requireShape } from "./shapes.ts";
import { clipText, dateFrom, platformRecordError } from "./values.ts";

/** Checks a record with the rules for records of all sources. @throws SdsError `bad_record` */
function checked<T extends CustomerRecord | SubscriptionRecord>(candidate: T): T {
  const parsed = parseRecord(candidate);
  if (!("refused" in parsed)) return parsed.record as T;
  const { field, reason } = parsed.refused;
  throw platformRecordError(`the platform's ${candidate.type} is not valid: ${field} ${reason}`);
}

/** Makes a customer's record. @throws SdsError `bad_record` */
export function customerRecord(node: CustomerNode): CustomerRecord {
  const { defaultEmailAddress: address, firstName, lastName } = requireShape("a customer", node);
  const record = checked<CustomerRecord>({
    type: "customer",
    shopifyId: node.id,
    ...(address !== undefined && {
      email: clipText(address?.emailAddress ?? null),
      marketingConsent: address?.marketingState === "SUBSCRIBED",
    }),
    ...(firstName !== undefined && { firstName: clipText(firstName) }),
    ...(lastName !== undefined && { lastName: clipText(lastName) }),
  });
  const asOf = Date.parse(dateFrom(node.updatedAt));
  const consentAt = address?.marketingUpdatedAt;
  return { ...record, asOf, consentAsOf: typeof consentAt === "string" ? Date.parse(dateFrom(consentAt)) : asOf };
}

/** Statuses that have another name in the mirror. */
const STATUS: Record<string, string> = { FAILED: "PAYMENT_FAILED" };

/** Makes a contract's record. @param customer a gid, also for a deleted person @throws SdsError `bad_record` */
export function subscriptionRecord(
  node: ContractNode,
  lines: readonly ContractLineNode[],
  customer: string,
  rate: Rate = "own",
): SubscriptionRecord {
  return checked<SubscriptionRecord>({
    type: "subscription",
    shopifyId: node.id,
    customer,
    status: (STATUS[node.status] ?? node.status) as SubscriptionRecord["status"],
    interval: node.billingPolicy.interval as SubscriptionRecord["interval"],
    intervalCount: node.billingPolicy.intervalCount,
    sellingPlanId: lines.find(({ sellingPlanId }) => sellingPlanId !== null)?.sellingPlanId ?? null,
    lines: contractLines(lines, rate),
    nextBillingDate: node.nextBillingDate === null ? null : dateFrom(node.nextBillingDate),
    startedAt: dateFrom(node.createdAt),
    revision: node.revisionId,
  });
}

/** Statuses of a contract whose failed cycles are not tried again. */
const ENDED_STATUSES = new Set(["FAILED", "CANCELLED", "EXPIRED"]);

/** Whether the billing of a contract has ended. A failed contract can become active again. */
export function hasEnded({ status }: Pick<ContractNode, "status">): boolean {
  return ENDED_STATUSES.has(status);
}

/** Statuses of an order that was paid at some time. A refund does not undo the payment. */
const PAID_STATUSES = new Set(["PAID", "PARTIALLY_PAID", "PARTIALLY_REFUNDED", "REFUNDED"]);

/** Statuses of an order whose payment was cancelled, or was authorized and not captured in time. */
const VOIDED_STATUSES = new Set(["VOIDED", "EXPIRED"]);

/** Returns the checkout as the only attempt of cycle 0. @throws SdsError `bad_record` */
export function checkoutAttempt(order: Omit<OrderNode, "lineItems">, money: OrderMoney): BillingAttempt {
  const at = dateFrom(order.processedAt ?? order.createdAt);
  const status = order.displayFinancialStatus ?? "";
  if (VOIDED_STATUSES.has(status)) return { startedAt: at, endedAt: at, outcome: { kind: "voided" } };
  if (!PAID_STATUSES.has(status)) return waiting(at);
  return { startedAt: at, endedAt: at, outcome: { kind: "charged", order: { shopifyId: order.id, ...money } } };
}

/**
 * How long a successful attempt waits for its order. Orders that are still missing then were deleted, or are too old
 * for the app to read. The attempt is then treated as charged.
 */
const ORDER_TIMEOUT_MS = 3_600_000;

/** Makes a billing attempt. @param expected the cost of an unreadable order @throws SdsError `bad_record` */
export function billingAttempt(
  { createdAt, completedAt, state }: AttemptNode,
  moneyOf: (order: string) => OrderMoney | undefined,
  expected: OrderMoney,
  now: number,
): BillingAttempt {
  const startedAt = dateFrom(createdAt);
  const endedAt = dateFrom(completedAt ?? createdAt);
  if (state.__typename === "SubscriptionBillingAttemptFailedState") {
    const { general, payment, inventory } = state.error;
    const reason = clipText(payment ?? inventory ?? general ?? "unexpected_error").toLowerCase();
    const outOfStock = payment === undefined && inventory !== undefined;
    return { startedAt, endedAt, outcome: { kind: "declined", reason, outOfStock } };
  }
  if (state.__typename !== "SubscriptionBillingAttemptSuccessState") return waiting(startedAt);
  const shopifyId = state.order?.id ?? null;
  const money = shopifyId === null ? undefined : moneyOf(shopifyId);
  if (money === undefined && now - Date.parse(endedAt) < ORDER_TIMEOUT_MS) return waiting(startedAt);
  const { lines, subtotalCents, discountCents, creditsCents } = money ?? expected;
  const order = { shopifyId, lines, subtotalCents, discountCents, creditsCents };
  return { startedAt, endedAt, outcome: { kind: "charged", order } };
}

function waiting(startedAt: string): BillingAttempt {
  return { startedAt, endedAt: null, outcome: { kind: "waiting" } };
}
