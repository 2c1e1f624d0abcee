import { isCharged } from "../../domain/order.ts";
import type { Order } from "../../domain/resources.ts";
import type { ShopAddress } from "../api/address.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import {
  type AttemptNode,
  BILLING_CYCLES,
  CYCLE_ATTEMPTS,
  type CycleNode,
  type CyclesVariables,
  MAX_CYCLES_PER_QUERY,
} from "../api/operations/billing.ts";
import type { ContractNode } from "../api/operations/contracts.ts";
import { allNodes } from "../api/paging.ts";

const DAY_MS = 86_400_000;
/** A skip can be undone until the cycle is over. Skipped cycles are read again until this time after their date. */
const SKIP_SETTLED_AFTER_MS = 30 * DAY_MS;
/** The most days that each interval can have. */
const INTERVAL_DAYS: Record<string, number> = { DAY: 1, WEEK: 7, MONTH: 31, YEAR: 366 };

/** The mirrored orders of a contract, by cycle number; the checkout is 0. */
export type MirroredOrders = ReadonlyMap<number, Order>;

/** The first cycle to read: it can still change, or it belongs to one of the changed orders. */
export function firstOpenCycle(mirrored: MirroredOrders, changedOrders: readonly string[], now: number): number {
  let first = 1;
  while (isSettled(mirrored.get(first), now)) first += 1;
  for (const [cycleNumber, { shopifyId }] of mirrored) {
    const isChanged = shopifyId !== null && changedOrders.includes(shopifyId);
    if (isChanged && cycleNumber > 0 && cycleNumber < first) first = cycleNumber;
  }
  return first;
}

function isSettled(order: Order | undefined, now: number): boolean {
  if (order === undefined) return false;
  return (
    isCharged(order.status) || (order.status === "SKIPPED" && Date.parse(order.billedAt) < now - SKIP_SETTLED_AFTER_MS)
  );
}

export function cycleRange(contractGid: string, from: number, count: number): CyclesVariables {
  return { id: contractGid, from, to: from + count - 1, count };
}

/** Reads about as many cycles as there are up to the horizon: more would cost more points. */
export async function readFirstCycles(
  client: GraphqlClient,
  shop: ShopAddress,
  node: ContractNode,
  from: number,
  now: number,
): Promise<CycleNode[]> {
  const lengthMs = longestIntervalMs(node);
  const lastCycle = Math.ceil((horizon(node, now) - Date.parse(node.createdAt)) / lengthMs) + 1;
  const count = Math.min(Math.max(lastCycle - from + 1, 1), MAX_CYCLES_PER_QUERY);
  const answer = await client.query(shop, BILLING_CYCLES, cycleRange(node.id, from, count));
  return answer.subscriptionBillingCycles.nodes;
}

/** Reads the cycles after the first ones, up to the horizon. */
export async function readFurtherCycles(
  client: GraphqlClient,
  shop: ShopAddress,
  node: ContractNode,
  first: readonly CycleNode[],
  now: number,
): Promise<CycleNode[]> {
  const end = horizon(node, now);
  const further: CycleNode[] = [];
  let last = first.at(-1);
  while (last !== undefined && Date.parse(last.billingAttemptExpectedDate) <= end) {
    const range = cycleRange(node.id, last.cycleIndex + 1, MAX_CYCLES_PER_QUERY);
    const { nodes } = (await client.query(shop, BILLING_CYCLES, range)).subscriptionBillingCycles;
    // Cycles that do not come after the last one would be read again and again.
    if ((nodes.at(-1)?.cycleIndex ?? 0) <= last.cycleIndex) break;
    further.push(...nodes);
    last = nodes.at(-1);
  }
  return further;
}

/** All attempts of a cycle. */
export function readAttempts(
  client: GraphqlClient,
  shop: ShopAddress,
  contractGid: string,
  { cycleIndex, billingAttempts }: CycleNode,
): Promise<AttemptNode[]> {
  return allNodes(billingAttempts, async (after) => {
    const answer = await client.query(shop, CYCLE_ATTEMPTS, { id: contractGid, index: cycleIndex, after });
    return answer.subscriptionBillingCycle?.billingAttempts;
  });
}

/** Cycles have no end. They are read up to two intervals after the next billing: a later cycle can be skipped now. */
function horizon(node: ContractNode, now: number): number {
  const nextBillingAt = node.nextBillingDate === null ? 0 : Date.parse(node.nextBillingDate);
  return Math.max(now, nextBillingAt) + 2 * longestIntervalMs(node);
}

function longestIntervalMs({ billingPolicy: { interval, intervalCount } }: ContractNode): number {
  return intervalCount * (INTERVAL_DAYS[interval] ?? 31) * DAY_MS;
}
