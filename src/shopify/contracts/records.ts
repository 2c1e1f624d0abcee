import type { BillingCycleRecord, MirrorRecord, OrderMoney } from "../../domain/records/platform-records.ts";
import type { RetryPlan } from "../../domain/retry-plan.ts";
import type { AttemptNode } from "../api/operations/attempts.ts";
import type { ContractLineNode, ContractNode } from "../api/operations/contracts.ts";
import type { CycleState } from "../api/operations/cycles.ts";
import { type MirroredOrders, nextBillingDate } from "./cycles.ts";
import { expectedMoney, type NoteRounding, type Rate } from "./money.ts";
import type { ContractOrders } from "./orders.ts";
import { billingAttempt, checkoutAttempt, customerRecord, hasEnded, subscriptionRecord } from "./translate.ts";
import { dateFrom } from "./values.ts";

/** A cycle with all its attempts. */
export interface CycleHistory extends Pick<CycleState, "cycleIndex" | "skipped" | "billingAttemptExpectedDate"> {
  attempts: readonly AttemptNode[];
  /** The lines of this cycle alone; undefined if it was not edited. */
  editedLines: readonly ContractLineNode[] | undefined;
}

/** Everything that is read of a contract. */
export interface ContractParts {
  node: ContractNode;
  lines: readonly ContractLineNode[];
  rate: Rate;
  /** The customer's gid. It may come from the mirror, because the node of a deleted person has no customer. */
  customer: string;
  /** Whether the contract is not in the mirror yet. */
  isNew: boolean;
  mirrored: MirroredOrders;
  /** The cycles that become orders. */
  cycles: readonly CycleHistory[];
  /** The numbers of the renewals, by cycle. */
  numbers: ReadonlyMap<number, number>;
  /** The cycle that is billed next; undefined if unknown. */
  next: CycleState | undefined;
  orders: ContractOrders;
  /** The expected cost of the next order. */
  expected: OrderMoney;
  retryPlan: RetryPlan;
  noteRounding: NoteRounding;
  now: number;
}

/** Makes the records of a contract, in the order in which they are applied. @throws SdsError `bad_record` */
export function contractRecords(parts: ContractParts): MirrorRecord[] {
  const { node, lines, rate, customer, isNew, next } = parts;
  const dated = { ...node, nextBillingDate: nextBillingDate(node, next) };
  const subscription = subscriptionRecord(dated, lines, customer, rate);
  const person = node.customer ? [customerRecord(node.customer)] : [];
  const orders = [...checkoutRecords(parts), ...cycleRecords(parts)];
  // The last order decides whether a cancellation is involuntary, so a known contract is applied after its orders. A
  // new contract is applied before its orders, because no order is accepted without its contract.
  return isNew ? [...person, subscription, ...orders] : [...person, ...orders, subscription];
}

type CommonFields = Pick<BillingCycleRecord, "type" | "subscription" | "contractEnded" | "revision" | "retryPlan">;

function commonFields({ node, retryPlan }: ContractParts): CommonFields {
  const { id: subscription, revisionId: revision } = node;
  return { type: "billing_cycle", subscription, contractEnded: hasEnded(node), revision, retryPlan };
}

function checkoutRecords(parts: ContractParts): BillingCycleRecord[] {
  const { checkout } = parts.orders;
  if (checkout === undefined) return [];
  const { node, money: expected } = checkout;
  const attempt = checkoutAttempt(node, expected);
  const cycle = { cycleNumber: 0, skipped: false, expectedAt: attempt.startedAt };
  return [{ ...commonFields(parts), source: "checkout", ...cycle, attempts: [attempt], expected }];
}

/** Returns the cycles that become orders: cycles that were tried or skipped, or that the mirror has. */
export function orderCycles(
  cycles: readonly CycleHistory[],
  mirrored: MirroredOrders,
  next: CycleState | undefined,
): CycleHistory[] {
  // Readings look no further than the cycle after the next billing, so skips of later cycles are ignored.
  const last = (next?.cycleIndex ?? Number.POSITIVE_INFINITY) + 1;
  return cycles.filter(
    ({ cycleIndex, skipped, attempts }) =>
      attempts.length > 0 || (skipped && cycleIndex <= last) || mirrored.has(cycleIndex),
  );
}

function cycleRecords(parts: ContractParts): BillingCycleRecord[] {
  const { mirrored, cycles, numbers, orders, noteRounding, rate, now } = parts;
  const known = new Set([...mirrored.values()].map((order) => order.cycleNumber));
  return cycles.map(({ cycleIndex, skipped, billingAttemptExpectedDate, attempts, editedLines }) => {
    const expected = editedLines === undefined ? parts.expected : expectedMoney(editedLines, noteRounding, rate);
    const cycleNumber = numbers.get(cycleIndex) ?? cycleIndex;
    return {
      ...commonFields(parts),
      source: "recurring",
      cycleNumber,
      isNew: !known.has(cycleNumber),
      skipped,
      expectedAt: dateFrom(billingAttemptExpectedDate),
      attempts: attempts.map((each) => billingAttempt(each, orders.moneyOf, expected, now)),
      expected,
    };
  });
}
