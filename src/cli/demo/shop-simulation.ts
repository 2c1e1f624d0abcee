import type { OrderRecord, SubscriptionRecord } from "../../domain/records/record-schemas.ts";
import type { Order } from "../../domain/resources.ts";
import { isoUtc } from "../../lib/time.ts";
import {
  DAY,
  pick,
  type SampleRecord,
  sampleCancelFlow,
  sampleCustomer,
  sampleOrder,
  sampleReward,
  sampleSubscription,
} from "./sample-records.ts";

/** Something that happens in the demo shop: a title, and the records that report it. */
interface ShopEvent {
  title: string;
  records: SampleRecord[];
}

interface Contract {
  record: SubscriptionRecord;
  cycle: number;
  /** A declined order that will be charged again. */
  unpaid?: OrderRecord;
}

interface ShopSimulation {
  /** The shop's past: each customer with a contract and its orders. Together they have every status. */
  past(customers: number): SampleRecord[];
  /** The next thing that happens. @param now epoch milliseconds */
  next(now: number): ShopEvent;
}

/** A small coffee shop: its data at the start, and random events from then on. @param startedAt epoch milliseconds */
export function createShopSimulation(startedAt: number): ShopSimulation {
  const contracts: Contract[] = [];
  let lastNumber = 1000;

  function nextNumber(): number {
    lastNumber += 1;
    return lastNumber;
  }

  function order(contract: Contract, at: number, status: Order["status"]): OrderRecord {
    return sampleOrder(contract.record, { cycle: contract.cycle, at, status, number: nextNumber() });
  }

  function change(contract: Contract, fields: Partial<SubscriptionRecord>): SubscriptionRecord {
    contract.record = { ...contract.record, ...fields };
    return contract.record;
  }

  function subscribe(at: number): { contract: Contract; records: SampleRecord[] } {
    const number = nextNumber();
    const contract: Contract = { record: sampleSubscription(number, at), cycle: 0 };
    contracts.push(contract);
    return { contract, records: [sampleCustomer(number), contract.record, order(contract, at, "PAID")] };
  }

  /** Renewals until today, and then a final state, which `turn` selects. */
  function history(contract: Contract, began: number, turn: number): SampleRecord[] {
    const records: SampleRecord[] = [];
    for (let at = began + 30 * DAY; at < startedAt; at += 30 * DAY) {
      contract.cycle += 1;
      records.push(order(contract, at, pick(["PAID", "PAID", "PAID", "PAID", "RECOVERED", "SKIPPED"])));
    }
    return [...records, ...endState(contract, turn % 10)];
  }

  /** @param state 0 to 9: of ten contracts, six stay active */
  function endState(contract: Contract, state: number): SampleRecord[] {
    if (state < 6) return [];
    if (state === 6) return [change(contract, { status: "PAUSED" })];
    if (state === 7)
      return [change(contract, { status: "CANCELLED", nextBillingDate: null, cancelledAt: isoUtc(startedAt - DAY) })];
    if (state === 8) return [change(contract, { status: "EXPIRED", nextBillingDate: null })];
    contract.cycle += 1;
    const last = order(contract, startedAt - DAY, pick(["FAILED", "UNCOLLECTIBLE", "PENDING"]));
    if (last.status === "FAILED") contract.unpaid = last;
    return [last, change(contract, { status: "PAYMENT_FAILED" })];
  }

  function renew(contract: Contract, now: number): ShopEvent {
    contract.cycle += 1;
    const paid = order(contract, now, "PAID");
    return {
      title: "a renewal is charged",
      records: [paid, change(contract, { nextBillingDate: isoUtc(now + 30 * DAY) })],
    };
  }

  function decline(contract: Contract, now: number): ShopEvent {
    contract.cycle += 1;
    const declined = order(contract, now, "FAILED");
    contract.unpaid = declined;
    return {
      title: `a renewal is declined (${declined.reason})`,
      records: [declined, change(contract, { status: "PAYMENT_FAILED" })],
    };
  }

  function retry(contract: Contract, unpaid: OrderRecord, now: number): ShopEvent {
    const attemptCount = (unpaid.attemptCount ?? 1) + 1;
    if (Math.random() < 0.4 && attemptCount < 4) {
      const declined: OrderRecord = { ...unpaid, attemptCount, nextRetryAt: isoUtc(now + 3 * DAY) };
      contract.unpaid = declined;
      return { title: `a renewal is declined again (attempt ${attemptCount})`, records: [declined] };
    }
    delete contract.unpaid;
    const shopifyId = `gid://shopify/Order/${nextNumber()}`;
    const recovered: OrderRecord = {
      ...unpaid,
      shopifyId,
      status: "RECOVERED",
      attemptCount,
      reason: null,
      nextRetryAt: null,
      retriesExhausted: null,
    };
    const active = change(contract, { status: "ACTIVE", nextBillingDate: isoUtc(now + 30 * DAY) });
    return { title: "a failed renewal is recovered", records: [recovered, active] };
  }

  function cancel(contract: Contract): ShopEvent {
    const flow = sampleCancelFlow(nextNumber(), contract.record.shopifyId);
    if (flow.accepted) return { title: "an offer prevents a cancellation", records: [flow] };
    const cancelled = change(contract, { status: "CANCELLED", nextBillingDate: null, churnType: "voluntary" });
    return { title: "a subscription is cancelled", records: [flow, cancelled] };
  }

  function reward({ record, cycle }: Contract): ShopEvent {
    const earned = sampleReward(nextNumber(), record.customer, cycle);
    return { title: `a ${earned.source} reward is earned`, records: [earned] };
  }

  function resume(contract: Contract, now: number): ShopEvent {
    const resumed = change(contract, { status: "ACTIVE", nextBillingDate: isoUtc(now + 30 * DAY) });
    return { title: "a subscription is resumed", records: [resumed] };
  }

  return {
    past(customers) {
      return Array.from({ length: customers }, (_, turn) => {
        const began = startedAt - Math.floor((20 + Math.random() * 400) * DAY);
        const { contract, records } = subscribe(began);
        return [...records, ...history(contract, began, turn)];
      }).flat();
    },

    next(now) {
      const contract = pick(contracts);
      const { status } = contract.record;
      const chance = Math.random();
      if (chance < 0.15 || status === "CANCELLED" || status === "EXPIRED")
        return { title: "a new subscriber", records: subscribe(now).records };
      if (contract.unpaid !== undefined) return retry(contract, contract.unpaid, now);
      if (status === "PAUSED") return resume(contract, now);
      if (chance < 0.25)
        return { title: "a subscription is paused", records: [change(contract, { status: "PAUSED" })] };
      if (chance < 0.35) return cancel(contract);
      if (chance < 0.45) return reward(contract);
      return chance < 0.6 ? decline(contract, now) : renew(contract, now);
    },
  };
}
