import type { CustomerRecord, OrderRecord, SubscriptionRecord } from "../../domain/records/record-schemas.ts";
import { isoUtc } from "../../lib/time.ts";
import { CYCLE_MS, type PlatformRecord } from "./sample-records.ts";

/** A contract of the demo's platform. */
interface Contract {
  record: SubscriptionRecord;
  /** Number of changes of the contract. */
  revision: number;
  /** Epoch milliseconds. */
  updatedAt: number;
  /** The checkout has number 0. */
  cycles: Map<number, { record: OrderRecord; attempts: BilledAttempt[] }>;
}

/** An attempt to bill a cycle. */
interface BilledAttempt {
  /** Epoch milliseconds. */
  at: number;
  /** Why the payment was declined; null if it was not declined. */
  reason: string | null;
}

/** A webhook of the platform, before it is signed. */
export interface PlatformEvent {
  topic: string;
  payload: object;
}

const HOUR = 3_600_000;

/** The demo shop as its platform knows it: customers, contracts, cycles, billing attempts and orders. */
export class PlatformShop {
  private readonly people = new Map<string, { record: CustomerRecord; updatedAt: number }>();
  private readonly contracts = new Map<string, Contract>();

  /** Applies a record of the simulation. @param now epoch milliseconds @returns the webhook about the change */
  apply(record: PlatformRecord, now: number): PlatformEvent | undefined {
    switch (record.type) {
      case "customer":
        this.people.set(record.shopifyId, { record, updatedAt: now });
        return { topic: "customers/create", payload: customerPayload(record, now) };
      case "subscription":
        return this.applyContract(record, now);
      case "order":
        return this.applyOrder(record, now);
    }
  }

  private applyContract(record: SubscriptionRecord, now: number): PlatformEvent {
    const stored = this.contracts.get(record.shopifyId);
    const contract = stored ?? { record, revision: 0, updatedAt: now, cycles: new Map() };
    Object.assign(contract, { record, revision: contract.revision + 1, updatedAt: now });
    this.contracts.set(record.shopifyId, contract);
    return {
      topic: `subscription_contracts/${stored === undefined ? "create" : "update"}`,
      payload: { admin_graphql_api_id: record.shopifyId, revision_id: String(contract.revision) },
    };
  }

  /** Adds the attempts that the order did not have before. A checkout has no attempts. */
  private applyOrder(record: OrderRecord, now: number): PlatformEvent | undefined {
    const contract = this.contracts.get(record.subscription);
    if (contract === undefined) return undefined;
    const stored = contract.cycles.get(record.cycleNumber);
    const cycle = stored ?? { record, attempts: [] };
    cycle.record = record;
    contract.cycles.set(record.cycleNumber, cycle);
    contract.updatedAt = now;
    const isCharged = record.shopifyId !== null;
    for (let count = cycle.attempts.length; count < attemptCount(record); count += 1) {
      const at = stored === undefined ? Math.min(now, Date.parse(record.billedAt) + count * HOUR) : now;
      const isDeclined = record.status !== "PENDING" && !(isCharged && count === attemptCount(record) - 1);
      cycle.attempts.push({ at, reason: isDeclined ? (record.reason ?? "insufficient_funds") : null });
    }
    if (record.cycleNumber === 0 || record.status === "SKIPPED" || record.status === "PENDING") return undefined;
    return {
      topic: `subscription_billing_attempts/${isCharged ? "success" : "failure"}`,
      payload: {
        admin_graphql_api_subscription_contract_id: record.subscription,
        admin_graphql_api_order_id: record.shopifyId,
        admin_graphql_api_id: attemptGid(record, cycle.attempts.length - 1),
      },
    };
  }

  customerNodes() {
    return [...this.people.values()].map(({ record, updatedAt }) => ({
      id: record.shopifyId,
      firstName: record.firstName,
      lastName: record.lastName,
      updatedAt: isoUtc(updatedAt),
      defaultEmailAddress: {
        emailAddress: record.email,
        marketingState: record.marketingConsent ? "SUBSCRIBED" : "NOT_SUBSCRIBED",
        marketingUpdatedAt: null,
      },
    }));
  }

  contractNodes() {
    const people = new Map(this.customerNodes().map((node) => [node.id, node]));
    return [...this.contracts.values()].map((contract) => {
      const { record, revision, updatedAt, cycles } = contract;
      const { sellingPlanId, interval, intervalCount, startedAt } = record;
      const lines = record.lines.map(({ unitPriceCents, ...line }) => ({
        ...{ ...line, sellingPlanId, currentPrice: money(unitPriceCents) },
        lineDiscountedPrice: money(unitPriceCents * line.quantity),
      }));
      const origin = cycles.get(0)?.record.shopifyId;
      return {
        ...{ __typename: "SubscriptionContract", id: record.shopifyId, status: statusOf(contract) },
        ...{ revisionId: String(revision), createdAt: startedAt ?? "", updatedAt: isoUtc(updatedAt) },
        nextBillingDate: record.nextBillingDate,
        customer: people.get(record.customer) ?? null,
        billingPolicy: { interval, intervalCount, maxCycles: null },
        originOrder: origin == null ? null : { id: origin },
        lines: wholePage(lines),
        billingAttempts: wholePage(this.attemptNodes(contract)),
      };
    });
  }

  /** Returns the attempts of one contract, or of all contracts. */
  attemptNodes(of?: Contract) {
    const contracts = of === undefined ? [...this.contracts.values()] : [of];
    return contracts.flatMap(({ cycles }) => [...cycles.values()].flatMap(attemptsOf));
  }

  orderNodes() {
    return [...this.contracts.values()].flatMap(({ cycles }) =>
      [...cycles.values()].flatMap((cycle) => (cycle.record.shopifyId === null ? [] : [orderNode(cycle)])),
    );
  }

  /** Returns cycles of a contract, also cycles in the future. @param from number of the first cycle */
  cycleNodes(gid: string, from: number, to: number) {
    const contract = this.contracts.get(gid);
    const startedAt = Date.parse(contract?.record.startedAt ?? "");
    const numbers = contract === undefined ? [] : Array.from({ length: to - from + 1 }, (_, index) => from + index);
    return numbers.map((cycleIndex) => {
      const cycle = contract?.cycles.get(cycleIndex);
      return {
        ...{ cycleIndex, status: cycle?.record.shopifyId == null ? "UNBILLED" : "BILLED", edited: false },
        skipped: cycle?.record.status === "SKIPPED",
        cycleStartAt: isoUtc(startedAt + (cycleIndex - 1) * CYCLE_MS),
        billingAttemptExpectedDate: isoUtc(startedAt + cycleIndex * CYCLE_MS),
        billingAttempts: wholePage(cycle === undefined ? [] : attemptsOf(cycle)),
      };
    });
  }

  /** Returns the first and the last number of a contract's cycles that are billed between two times. */
  cycleRange(gid: string, start: number, end: number): [from: number, to: number] {
    const startedAt = Date.parse(this.contracts.get(gid)?.record.startedAt ?? "");
    return [
      Math.max(1, Math.ceil((start - startedAt) / CYCLE_MS)),
      Math.max(1, Math.floor((end - startedAt) / CYCLE_MS)),
    ];
  }
}

function attemptCount({ status, cycleNumber, attemptCount: count }: OrderRecord): number {
  if (cycleNumber === 0 || status === "SKIPPED") return 0;
  return count ?? (status === "RECOVERED" ? 2 : 1);
}

/** The platform sets a contract to FAILED only after the app has given up. */
function statusOf({ record, cycles }: Contract): string {
  if (record.status !== "PAYMENT_FAILED") return record.status;
  const last = [...cycles.values()].at(-1)?.record.status;
  return last === "UNCOLLECTIBLE" ? "FAILED" : "ACTIVE";
}

function attemptsOf({ record, attempts }: { record: OrderRecord; attempts: readonly BilledAttempt[] }) {
  return attempts.map(({ at, reason }, index) => {
    const isPending = record.status === "PENDING" && index === attempts.length - 1;
    return {
      id: attemptGid(record, index),
      idempotencyKey: attemptGid(record, index),
      createdAt: isoUtc(at),
      completedAt: isPending ? null : isoUtc(at),
      subscriptionContract: { id: record.subscription },
      state: attemptState(isPending, reason, record.shopifyId),
    };
  });
}

function attemptState(isPending: boolean, reason: string | null, order: string | null | undefined) {
  if (isPending) return { __typename: "SubscriptionBillingAttemptPendingState" };
  if (reason === null) return { __typename: "SubscriptionBillingAttemptSuccessState", order: { id: order } };
  return { __typename: "SubscriptionBillingAttemptFailedState", error: { payment: reason.toUpperCase() } };
}

function attemptGid({ subscription, cycleNumber }: OrderRecord, index: number): string {
  const contract = subscription.slice(subscription.lastIndexOf("/") + 1);
  const padded = [cycleNumber, index].map((number) => String(number).padStart(3, "0"));
  return `gid://shopify/SubscriptionBillingAttempt/${contract}${padded.join("")}`;
}

function orderNode({ record, attempts }: { record: OrderRecord; attempts: readonly BilledAttempt[] }) {
  const at = isoUtc(attempts.at(-1)?.at ?? Date.parse(record.billedAt));
  const discount = {
    allocatedAmountSet: shopMoney(record.discountCents),
    discountApplication: { title: "Subscriber" },
  };
  const lines = record.lines.map(({ variantId, productId, title, quantity, unitPriceCents }, index) => ({
    ...{ title, quantity, currentQuantity: quantity, contract: { id: record.subscription } },
    ...{ variant: { id: variantId }, product: { id: productId } },
    originalUnitPriceSet: { ...shopMoney(unitPriceCents), presentmentMoney: money(unitPriceCents) },
    discountAllocations: index === 0 ? [discount] : [],
  }));
  return {
    ...{ __typename: "Order", id: record.shopifyId ?? "", createdAt: at, processedAt: at, updatedAt: at },
    ...{ displayFinancialStatus: "PAID", edited: false, lineItems: wholePage(lines) },
  };
}

/** Returns the payload of a customer's webhook. Its fields have other names than the fields of a query. */
function customerPayload({ shopifyId, email, firstName, lastName }: CustomerRecord, now: number) {
  return {
    ...{ admin_graphql_api_id: shopifyId, updated_at: isoUtc(now) },
    ...{ email, first_name: firstName, last_name: lastName },
  };
}

function money(cents: number) {
  return { amount: (cents / 100).toFixed(2), currencyCode: "USD" };
}

function shopMoney(cents: number) {
  return { shopMoney: money(cents) };
}

/** Returns a list that fits on one page. */
function wholePage<T>(nodes: readonly T[]) {
  return { pageInfo: { hasNextPage: false, endCursor: null }, nodes };
}
