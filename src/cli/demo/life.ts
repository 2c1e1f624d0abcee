import type { CancelFlowRecord, CustomerRecord, OrderRecord, RewardRecord, SubscriptionRecord } from "../../domain/records.ts";
import type { LineItem, Order } from "../../domain/resources.ts";
import { isoUtc } from "../../lib/time.ts";

type DemoRecord = CustomerRecord | SubscriptionRecord | OrderRecord | RewardRecord | CancelFlowRecord;

/** Something that happens in the demo shop: what it is called, and the records that say so. */
export interface Happening {
  title: string;
  records: DemoRecord[];
}

const DAY = 86_400_000;
const FIRST_NAMES = ["Ada", "Ben", "Chiara", "Deniz", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jonas", "Keiko", "Lena", "Mateo", "Noor", "Oskar", "Priya"];
const LAST_NAMES = ["Abe", "Brandt", "Costa", "Dubois", "Eriksen", "Fischer", "Garcia", "Haddad", "Ito", "Jansen", "Kowalska", "Lindqvist", "Moreau"];
const PRODUCTS = [
  { title: "House blend, 1 kg", cents: 2400 },
  { title: "Single origin Ethiopia, 500 g", cents: 1650 },
  { title: "Decaf, 500 g", cents: 1450 },
  { title: "Espresso roast, 1 kg", cents: 2600 },
  { title: "Oat milk, 6 × 1 l", cents: 1390 },
];
const DECLINES = ["insufficient_funds", "expired_payment_method", "payment_method_declined"];
const REASONS = ["too_expensive", "too_much_product", "moving", "prefer_another"];

interface Contract {
  record: SubscriptionRecord;
  cycle: number;
  /** The order that was declined and is still to be paid. */
  unpaid?: OrderRecord;
}

/** A small coffee shop that lives: whom it has at the beginning, and what happens to it from then on. */
export class DemoShop {
  private readonly contracts: Contract[] = [];
  private readonly startedAt: number;
  private lastNumber = 1000;

  /** @param startedAt epoch milliseconds */
  constructor(startedAt: number) {
    this.startedAt = startedAt;
  }

  /** The shop's past: customers with a contract or two, their orders, every status of both. */
  *past(customers: number): Generator<DemoRecord[]> {
    for (let i = 0; i < customers; i += 1) {
      const began = this.startedAt - Math.floor((20 + Math.random() * 400) * DAY);
      const { records, contract } = this.subscriber(began);
      yield [...records, ...this.history(contract, began, i)];
    }
  }

  /** The next thing that happens. @param now epoch milliseconds */
  next(now: number): Happening {
    const contract = pick(this.contracts);
    const { status } = contract.record;
    const chance = Math.random();
    if (chance < 0.15 || status === "CANCELLED" || status === "EXPIRED") {
      const { records } = this.subscriber(now);
      return { title: "a new subscriber", records };
    }
    if (contract.unpaid !== undefined) return this.retry(contract, contract.unpaid, now);
    if (status === "PAUSED") return this.change(contract, "a subscription is resumed", { status: "ACTIVE", nextBillingDate: isoUtc(now + 30 * DAY) });
    if (chance < 0.25) return this.change(contract, "a subscription is paused", { status: "PAUSED" });
    if (chance < 0.35) return this.cancel(contract);
    if (chance < 0.45) return this.reward(contract);
    return this.renew(contract, now, chance < 0.6 ? "FAILED" : "PAID");
  }

  private subscriber(at: number): { records: DemoRecord[]; contract: Contract } {
    const number = this.nextNumber();
    const firstName = pick(FIRST_NAMES);
    const lastName = pick(LAST_NAMES);
    const customer: CustomerRecord = {
      type: "customer",
      shopifyId: `gid://shopify/Customer/${number}`,
      email: `${firstName}.${lastName}.${number}@example.com`.toLowerCase(),
      firstName,
      lastName,
      marketingConsent: Math.random() < 0.6,
      loyaltyTier: Math.floor(Math.random() * 3),
      creditsCents: Math.random() < 0.3 ? 500 : 0,
    };
    const record: SubscriptionRecord = {
      type: "subscription",
      shopifyId: `gid://shopify/SubscriptionContract/${number}`,
      customer: customer.shopifyId,
      status: "ACTIVE",
      interval: pick(["WEEK", "MONTH"]),
      intervalCount: pick([1, 1, 2]),
      sellingPlanId: `gid://shopify/SellingPlan/${1 + Math.floor(Math.random() * 3)}`,
      lines: [this.line()],
      nextBillingDate: isoUtc(at + 30 * DAY),
      startedAt: isoUtc(at),
    };
    const contract: Contract = { record, cycle: 0 };
    this.contracts.push(contract);
    return { records: [customer, { ...record }, this.order(contract, at, "PAID")], contract };
  }

  /** Renewals up to today, and then, by the contract's turn, one of the states a contract can be in. */
  private history(contract: Contract, began: number, turn: number): DemoRecord[] {
    const records: DemoRecord[] = [];
    for (let at = began + 30 * DAY; at < this.startedAt; at += 30 * DAY) {
      contract.cycle += 1;
      records.push(this.order(contract, at, pick(["PAID", "PAID", "PAID", "PAID", "RECOVERED", "SKIPPED"])));
    }
    const state = turn % 10;
    if (state < 6) return records;
    if (state === 6) return [...records, ...this.change(contract, "", { status: "PAUSED" }).records];
    if (state === 7) {
      return [...records, ...this.change(contract, "", { status: "CANCELLED", nextBillingDate: null, cancelledAt: isoUtc(this.startedAt - DAY) }).records];
    }
    if (state === 8) return [...records, ...this.change(contract, "", { status: "EXPIRED", nextBillingDate: null }).records];
    contract.cycle += 1;
    const last = this.order(contract, this.startedAt - DAY, pick(["FAILED", "UNCOLLECTIBLE", "PENDING"]));
    if (last.status === "FAILED") contract.unpaid = last;
    return [...records, last, ...this.change(contract, "", { status: "PAYMENT_FAILED" }).records];
  }

  private renew(contract: Contract, now: number, status: "PAID" | "FAILED"): Happening {
    contract.cycle += 1;
    const order = this.order(contract, now, status);
    if (status === "PAID") {
      const moved = this.change(contract, "a renewal is charged", { nextBillingDate: isoUtc(now + 30 * DAY) });
      return { ...moved, records: [order, ...moved.records] };
    }
    contract.unpaid = order;
    const failed = this.change(contract, `a renewal is declined (${order.reason})`, { status: "PAYMENT_FAILED" });
    return { ...failed, records: [order, ...failed.records] };
  }

  private retry(contract: Contract, unpaid: OrderRecord, now: number): Happening {
    const attemptCount = (unpaid.attemptCount ?? 1) + 1;
    if (Math.random() < 0.4 && attemptCount < 4) {
      const again: OrderRecord = { ...unpaid, attemptCount, nextRetryAt: isoUtc(now + 3 * DAY) };
      contract.unpaid = again;
      return { title: `a retry is declined (attempt ${attemptCount})`, records: [again] };
    }
    delete contract.unpaid;
    const paid: OrderRecord = {
      ...unpaid,
      shopifyId: `gid://shopify/Order/${this.nextNumber()}`,
      status: "RECOVERED",
      attemptCount,
      reason: null,
      nextRetryAt: null,
      retriesExhausted: null,
    };
    const live = this.change(contract, "a failed renewal is recovered", { status: "ACTIVE", nextBillingDate: isoUtc(now + 30 * DAY) });
    return { ...live, records: [paid, ...live.records] };
  }

  private cancel(contract: Contract): Happening {
    const flow: CancelFlowRecord = {
      type: "cancel_flow",
      id: `flow-${this.nextNumber()}`,
      subscription: contract.record.shopifyId,
      reason_id: pick(REASONS),
      offer_type: pick(["discount", "pause", null]),
      accepted: Math.random() < 0.4,
      saved: false,
    };
    if (flow.accepted) return { title: "a cancellation is averted by an offer", records: [{ ...flow, saved: true }] };
    const cancelled = this.change(contract, "a subscription is cancelled", { status: "CANCELLED", nextBillingDate: null, churnType: "voluntary" });
    return { ...cancelled, records: [flow, ...cancelled.records] };
  }

  private reward(contract: Contract): Happening {
    const source = pick(["loyalty", "streak", "referral"]);
    const fields = { loyalty: { credit_cents: 500 }, streak: { milestone: 5, cycles: contract.cycle }, referral: { reward_cents: 1000 } }[source];
    const reward: RewardRecord = { type: "reward", id: `reward-${this.nextNumber()}`, source, customer: contract.record.customer, ...fields };
    return { title: `a ${source} reward is earned`, records: [reward] };
  }

  private change(contract: Contract, title: string, change: Partial<SubscriptionRecord>): Happening {
    contract.record = { ...contract.record, ...change };
    return { title, records: [contract.record] };
  }

  private order(contract: Contract, at: number, status: Order["status"]): OrderRecord {
    const subtotalCents = contract.record.lines.reduce((sum, { quantity, unitPriceCents }) => sum + quantity * unitPriceCents, 0);
    const charged = status === "PAID" || status === "RECOVERED";
    const declined = status === "FAILED" || status === "UNCOLLECTIBLE";
    return {
      type: "order",
      subscription: contract.record.shopifyId,
      source: contract.cycle === 0 ? "checkout" : "recurring",
      cycleNumber: contract.cycle,
      shopifyId: charged ? `gid://shopify/Order/${this.nextNumber()}` : null,
      status,
      lines: contract.record.lines,
      subtotalCents,
      discountCents: Math.round(subtotalCents / 10),
      creditsCents: 0,
      billedAt: isoUtc(at),
      ...(declined && {
        attemptCount: status === "FAILED" ? 1 : 4,
        reason: pick(DECLINES),
        nextRetryAt: status === "FAILED" ? isoUtc(at + DAY) : null,
        retriesExhausted: status === "UNCOLLECTIBLE",
      }),
    };
  }

  private line(): LineItem {
    const index = Math.floor(Math.random() * PRODUCTS.length);
    const { title, cents } = PRODUCTS[index] as (typeof PRODUCTS)[number];
    return {
      variantId: `gid://shopify/ProductVariant/${index + 1}`,
      productId: `gid://shopify/Product/${index + 1}`,
      title,
      quantity: pick([1, 1, 2]),
      unitPriceCents: cents,
    };
  }

  private nextNumber(): number {
    this.lastNumber += 1;
    return this.lastNumber;
  }
}

function pick<const T>(values: readonly T[]): T {
  return values[Math.floor(Math.random() * values.length)] as T;
}
