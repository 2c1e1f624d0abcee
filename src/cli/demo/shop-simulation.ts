import type { OrderRecord, SubscriptionRecord } from "../../domain/records/record-schemas.ts";
import type { Order } from "../../domain/resources.ts";
import { isoUtc } from "../../lib/time.ts";
import {
  CYCLE_MS,
  DAY,
  pick,
  type SampleRecord,
  sampleCancelFlow,
  sampleCustomer,
  sampleOrder,
  sampleReward,
  sampleSubscription,
} from "./sample-records.ts";

/** An event of the demo shop, with the records that report it. */
interface DemoEvent {
  title: string;
  records: SampleRecord[];
}

interface DemoContract {
  record: SubscriptionRecord;
  cycle: number;
  /** A declined order that will be charged again. */
  unpaid?: OrderRecord;
}

/** Simulates a small coffee shop: first its past, then random events. */
export class ShopSimulation {
  private readonly startedAt: number;
  private readonly contracts: DemoContract[] = [];
  private lastNumber = 1000;
  private events = 0;

  /** @param startedAt epoch milliseconds */
  constructor(startedAt: number) {
    this.startedAt = startedAt;
  }

  /** Makes the past of the shop: customers with their contracts and orders. The contracts have every status. */
  past(customers: number): SampleRecord[] {
    return Array.from({ length: customers }, (_, turn) => {
      const began = this.startedAt - Math.floor((20 + Math.random() * 400) * DAY);
      const { contract, records } = this.subscribe(began);
      return [...records, ...this.history(contract, began, turn)];
    }).flat();
  }

  /** Returns the next event. The first three are fixed: decline, reward, recovery. @param now epoch milliseconds */
  next(now: number): DemoEvent {
    this.events += 1;
    const contract = pick(this.events < 3 ? this.contracts.filter(isDue) : this.contracts);
    if (this.events === 1) return this.decline(contract, now);
    if (this.events === 2) return this.reward(contract);
    const declined = this.contracts.find(({ unpaid }) => unpaid !== undefined);
    if (this.events === 3 && declined?.unpaid !== undefined) return this.recover(declined, declined.unpaid, now);
    const { status } = contract.record;
    const chance = Math.random();
    if (chance < 0.15 || status === "CANCELLED" || status === "EXPIRED")
      return { title: "a new subscriber", records: this.subscribe(now).records };
    if (contract.unpaid !== undefined) return this.retry(contract, contract.unpaid, now);
    if (status === "PAUSED") return { title: "a subscription is resumed", records: [this.activate(contract, now)] };
    if (chance < 0.25)
      return { title: "a subscription is paused", records: [this.change(contract, { status: "PAUSED" })] };
    if (chance < 0.35) return this.cancel(contract);
    if (chance < 0.45) return this.reward(contract);
    return chance < 0.6 ? this.decline(contract, now) : this.renew(contract, now);
  }

  private nextNumber(): number {
    this.lastNumber += 1;
    return this.lastNumber;
  }

  private order(contract: DemoContract, at: number, status: Order["status"]): OrderRecord {
    return sampleOrder(contract.record, { cycle: contract.cycle, at, status, number: this.nextNumber() });
  }

  private change(contract: DemoContract, fields: Partial<SubscriptionRecord>): SubscriptionRecord {
    contract.record = { ...contract.record, ...fields };
    return contract.record;
  }

  private activate(contract: DemoContract, now: number): SubscriptionRecord {
    return this.change(contract, { status: "ACTIVE", nextBillingDate: isoUtc(now + CYCLE_MS) });
  }

  private subscribe(at: number): { contract: DemoContract; records: SampleRecord[] } {
    const number = this.nextNumber();
    const contract: DemoContract = { record: sampleSubscription(number, at), cycle: 0 };
    this.contracts.push(contract);
    return { contract, records: [sampleCustomer(number), contract.record, this.order(contract, at, "PAID")] };
  }

  /** Makes the renewals of a contract until today, then its end state. `turn` selects the end state. */
  private history(contract: DemoContract, began: number, turn: number): SampleRecord[] {
    const records: SampleRecord[] = [];
    for (let at = began + CYCLE_MS; at < this.startedAt; at += CYCLE_MS) {
      contract.cycle += 1;
      records.push(this.order(contract, at, pick(["PAID", "PAID", "PAID", "PAID", "RECOVERED", "SKIPPED"])));
    }
    return [...records, ...this.endState(contract, turn % 10)];
  }

  /** Makes the records that bring a contract to its end state. @param state 0 to 9; 0 to 5 stay active */
  private endState(contract: DemoContract, state: number): SampleRecord[] {
    if (state < 6) return [];
    if (state === 6) return [this.change(contract, { status: "PAUSED" })];
    const yesterday = this.startedAt - DAY;
    const ended = { nextBillingDate: null, cancelledAt: isoUtc(yesterday) };
    if (state === 7) return [this.change(contract, { status: "CANCELLED", ...ended })];
    if (state === 8) return [this.change(contract, { status: "EXPIRED", nextBillingDate: null })];
    contract.cycle += 1;
    const last = this.order(contract, yesterday, pick(["FAILED", "UNCOLLECTIBLE", "PENDING"]));
    if (last.status === "FAILED") contract.unpaid = last;
    return [last, this.change(contract, { status: "PAYMENT_FAILED" })];
  }

  private renew(contract: DemoContract, now: number): DemoEvent {
    contract.cycle += 1;
    const paid = this.order(contract, now, "PAID");
    return { title: "a renewal is charged", records: [paid, this.activate(contract, now)] };
  }

  private decline(contract: DemoContract, now: number): DemoEvent {
    contract.cycle += 1;
    const declined = this.order(contract, now, "FAILED");
    contract.unpaid = declined;
    return {
      title: `a renewal is declined (${declined.reason})`,
      records: [declined, this.change(contract, { status: "PAYMENT_FAILED" })],
    };
  }

  private retry(contract: DemoContract, unpaid: OrderRecord, now: number): DemoEvent {
    const attemptCount = (unpaid.attemptCount ?? 1) + 1;
    if (Math.random() < 0.4 && attemptCount < 4) {
      const declined: OrderRecord = { ...unpaid, attemptCount, nextRetryAt: isoUtc(now + 3 * DAY) };
      contract.unpaid = declined;
      return { title: `a renewal is declined again (attempt ${attemptCount})`, records: [declined] };
    }
    return this.recover(contract, unpaid, now);
  }

  private recover(contract: DemoContract, unpaid: OrderRecord, now: number): DemoEvent {
    delete contract.unpaid;
    const recovered: OrderRecord = {
      ...unpaid,
      shopifyId: `gid://shopify/Order/${this.nextNumber()}`,
      status: "RECOVERED",
      attemptCount: (unpaid.attemptCount ?? 1) + 1,
      reason: null,
      nextRetryAt: null,
      retriesExhausted: null,
    };
    return { title: "a failed renewal is recovered", records: [recovered, this.activate(contract, now)] };
  }

  private cancel(contract: DemoContract): DemoEvent {
    const flow = sampleCancelFlow(this.nextNumber(), contract.record.shopifyId);
    if (flow.accepted) return { title: "an offer prevents a cancellation", records: [flow] };
    const cancelled = this.change(contract, { status: "CANCELLED", nextBillingDate: null, churnType: "voluntary" });
    return { title: "a subscription is cancelled", records: [flow, cancelled] };
  }

  private reward({ record, cycle }: DemoContract): DemoEvent {
    const earned = sampleReward(this.nextNumber(), record.customer, cycle);
    return { title: `a ${earned.source} reward is earned`, records: [earned] };
  }
}

function isDue({ record: { status }, unpaid }: DemoContract): boolean {
  return status === "ACTIVE" && unpaid === undefined;
}
