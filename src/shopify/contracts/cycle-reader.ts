import type { Subscription } from "../../domain/resources.ts";
import { isoUtc } from "../../lib/time.ts";
import { MAX_GAP } from "../../store/engine/contract-orders.ts";
import type { ShopAddress } from "../api/address.ts";
import type { BatchSizes } from "../api/batches.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { type AttemptNode, CYCLE_ATTEMPTS } from "../api/operations/attempts.ts";
import type { ContractLineNode, ContractNode } from "../api/operations/contracts.ts";
import { BILLING_CYCLES, BILLING_CYCLES_BY_DATE, type CycleNode, EDITED_LINES } from "../api/operations/cycles.ts";
import { allNodes } from "../api/paging.ts";
import { isPlatformError, mayBeOneObject, PlatformError } from "../api/platform-error.ts";
import {
  firstOpenCycle,
  hasNextBilling,
  intervalMs,
  isUntouched,
  lastCycle,
  type MirroredOrders,
  nextCycle,
} from "./cycles.ts";
import { requireShape } from "./shapes.ts";
import { dateFrom, platformRecordError } from "./values.ts";

/** Size of the first query for a known contract: the first cycle that can have changed, and the next two. */
const FIRST_COUNT = 3;
/** Number of cycles in each further query. */
const FURTHER_COUNT = 12;
/** Number of further cycles in which we look for an order. The mirror accepts no gap of more than `MAX_GAP`. */
const AHEAD_COUNT = MAX_GAP - FIRST_COUNT;
/** Maximum number of cycles in a first query. More cycles would cost too many points. */
const MAX_COUNT = 50;
/** More cycles than this are a fault of the platform: even a contract with daily cycles has only 3,653 in ten years. */
const MAX_CYCLES = 4_000;
/** Cycles further in the future than this are not read. Merchants do not skip all cycles for longer. */
const MAX_LOOK_AHEAD_MS = 3 * 366 * 86_400_000;

export interface CycleSource {
  client: GraphqlClient;
  sizes: BatchSizes;
  /** The platform's time. */
  now: () => number;
}

/** The facts about a contract that are known before its cycles are read. */
export interface CycleReading {
  shop: ShopAddress;
  contractGid: string;
  mirrored: MirroredOrders;
  /** The contract in the mirror; undefined if it is new. */
  before: Subscription | undefined;
  /** Number of attempts of the contract; undefined if unknown. */
  attemptCount?: number | undefined;
  /** Whether to read all cycles up to now, to find an order of a cycle that counts as settled. */
  readsSettled?: boolean;
  /** The number of a cycle that was charged early. All cycles up to it are read. */
  chargedEarly?: number;
  /** See `settledTime`. */
  settledBefore: number;
}

/**
 * Reads the first cycles that can have changed. Needs only the mirrored contract, not the platform's contract.
 * @throws PlatformError
 */
export function readOpenCycles(
  source: CycleSource,
  reading: CycleReading & { before: Subscription },
): Promise<CycleNode[]> {
  const { mirrored, before, settledBefore } = reading;
  const first = firstOpenCycle(mirrored, settledBefore);
  const { min, max } = intervalMs(before);
  const isIdle = hasNextBilling(before) && latestDueAt(before, mirrored, first, max) < settledBefore - max;
  return isIdle ? readAroundNow(source, reading, settledBefore, min) : readCycles(source, reading, first, FIRST_COUNT);
}

/** Reads cycles from the first cycle that can have changed, up to now and a few later cycles. @throws PlatformError */
export function readFirstCycles(source: CycleSource, node: ContractNode, reading: CycleReading): Promise<CycleNode[]> {
  const { mirrored, settledBefore, readsSettled = false } = reading;
  const first = firstOpenCycle(mirrored, readsSettled ? 0 : settledBefore);
  const { max } = intervalMs(node.billingPolicy);
  const cyclesSoFar = Math.ceil((latestEnd(node, undefined, source.now()) - Date.parse(node.createdAt)) / max);
  const count = Math.min(Math.max(cyclesSoFar + FIRST_COUNT - first, FIRST_COUNT), MAX_COUNT);
  return readCycles(source, reading, first, Math.min(count, lastCycle(node, reading.mirrored) + 1 - first));
}

/** Reads the cycles after `first`, up to the cycle after the next billing. @throws PlatformError */
export async function readFurtherCycles(
  source: CycleSource,
  node: ContractNode,
  reading: CycleReading,
  first: readonly CycleNode[],
): Promise<CycleNode[]> {
  const all = [...first];
  while (!isEnough(all, node, reading, source.now())) {
    const last = all.at(-1)?.cycleIndex ?? 0;
    const left = lastCycle(node, reading.mirrored) - last;
    // Cycles after the contract's end are read only to find a missing attempt.
    const nodes = await readMore(source, reading, last + 1, left > 0 ? Math.min(left, FURTHER_COUNT) : FURTHER_COUNT);
    if (all.length > MAX_CYCLES) throw platformRecordError(`the platform's cycles of ${node.id} do not end`);
    // Stops if the platform sends no later cycle. Otherwise the loop would read the same cycles again and again.
    if ((nodes.at(-1)?.cycleIndex ?? 0) <= last) break;
    all.push(...nodes);
  }
  return all.slice(first.length);
}

/** Reads some cycles after `cycles`, because a later cycle may have been charged early. @throws PlatformError */
export async function readCyclesAhead(
  source: CycleSource,
  node: ContractNode,
  reading: CycleReading,
  cycles: readonly CycleNode[],
): Promise<CycleNode[]> {
  const last = cycles.at(-1)?.cycleIndex;
  if (last === undefined) return [];
  const count = Math.min(AHEAD_COUNT, lastCycle(node, reading.mirrored) - last);
  const ahead = await readMore(source, reading, last + 1, count);
  return ahead.filter(({ cycleIndex }) => cycleIndex > last);
}

/**
 * Like `readCycles`, but returns no cycles if the platform refuses the query: the contract may not have these cycles.
 */
export async function readMore(
  source: CycleSource,
  reading: CycleReading,
  from: number,
  wanted: number,
): Promise<CycleNode[]> {
  try {
    return await readCycles(source, reading, from, wanted);
  } catch (thrown) {
    if (isRangeRefused(thrown)) return [];
    throw thrown;
  }
}

/**
 * Reads up to `wanted` cycles from number `from` on. If the platform refuses the query, reads fewer cycles, because the
 * later cycles may be too far in the future.
 * @returns the cycles that exist @throws PlatformError
 */
async function readCycles(
  { client, sizes }: CycleSource,
  { shop, contractGid: id }: CycleReading,
  from: number,
  wanted: number,
): Promise<CycleNode[]> {
  const cycles: CycleNode[] = [];
  let most = wanted;
  for (let next = from; next < from + wanted; ) {
    const count = sizes.of(shop, BILLING_CYCLES.name, Math.min(most, from + wanted - next));
    try {
      const data = await client.query(shop, BILLING_CYCLES, { id, from: next, to: next + count - 1, count });
      cycles.push(...checkedCycles(data));
      next += count;
    } catch (thrown) {
      const isTooCostly = thrown instanceof PlatformError && thrown.isTooCostly;
      if (!isTooCostly && !isRangeRefused(thrown)) throw thrown;
      if (count === 1 && next > from && !isTooCostly) break;
      if (count === 1) throw thrown;
      if (isTooCostly) sizes.halve(shop, BILLING_CYCLES.name, count);
      else most = Math.floor(count / 2);
    }
  }
  return cycles;
}

/** Whether the platform refuses the query, but may accept a query for fewer cycles. */
function isRangeRefused(thrown: unknown): boolean {
  return isPlatformError(thrown, "refused") && mayBeOneObject(thrown) && !thrown.isTooCostly;
}

/** Reads the cycles from `start` to two cycles after now, for a contract that was not billed for a long time. */
async function readAroundNow(
  { client, now }: CycleSource,
  { shop, contractGid: id }: CycleReading,
  start: number,
  lengthMs: number,
): Promise<CycleNode[]> {
  const end = now() + 2 * lengthMs;
  const count = Math.min(Math.ceil((end - start) / lengthMs) + 2, MAX_COUNT);
  const variables = { id, start: isoUtc(start), end: isoUtc(end), count };
  return checkedCycles(await client.query(shop, BILLING_CYCLES_BY_DATE, variables));
}

/** Checks that cycles have numbers and dates. Without both, a search would not end. @throws SdsError `bad_record` */
function checkedCycles(data: { subscriptionBillingCycles: { nodes: CycleNode[] } }): CycleNode[] {
  const { nodes } = requireShape("cycles", data).subscriptionBillingCycles;
  for (const { cycleIndex, cycleStartAt, billingAttemptExpectedDate } of nodes) {
    if (!(cycleIndex > 0)) throw platformRecordError("the platform sent a billing cycle without a number");
    dateFrom(cycleStartAt);
    dateFrom(billingAttemptExpectedDate);
  }
  return nodes;
}

/** Reads all attempts of a cycle. @throws PlatformError */
export function readAttempts(
  { client }: CycleSource,
  { shop, contractGid: id }: CycleReading,
  { cycleIndex: index, billingAttempts }: CycleNode,
): Promise<AttemptNode[]> {
  return allNodes(billingAttempts, async (after) => {
    const data = await client.query(shop, CYCLE_ATTEMPTS, { id, index, after });
    return requireShape("attempts", data.subscriptionBillingCycle?.billingAttempts);
  });
}

/** Reads the lines of an edited cycle. @returns undefined if the cycle was not edited @throws PlatformError */
export async function readEditedLines(
  { client }: CycleSource,
  { shop, contractGid: id }: CycleReading,
  { cycleIndex: index, edited }: CycleNode,
): Promise<ContractLineNode[] | undefined> {
  if (!edited) return undefined;
  const readPage = async (after: string | null) => {
    const data = await client.query(shop, EDITED_LINES, { id, index, after });
    return requireShape("lines of a contract", data.subscriptionBillingCycle?.editedContract?.lines);
  };
  const first = await readPage(null);
  return first && allNodes(first, readPage);
}

/** Estimates the latest due time of a cycle, from the last mirrored order before this cycle. */
function latestDueAt({ startedAt }: Subscription, mirrored: MirroredOrders, cycle: number, longestMs: number): number {
  const before = [...mirrored].filter(([cycleNumber]) => cycleNumber > 0 && cycleNumber < cycle);
  const [last, order] = before.toSorted(([a], [b]) => a - b).at(-1) ?? [0, undefined];
  return Date.parse(order?.billedAt ?? startedAt) + (cycle - last) * longestMs;
}

/** Returns the latest time at which a contract can have ended. Returns `now` if the contract has not ended. */
function latestEnd(node: ContractNode, before: Subscription | undefined, now: number): number {
  if (hasNextBilling(node)) return now;
  return Math.min(now, Date.parse(before?.cancelledAt ?? node.updatedAt));
}

/** Whether the cycles reach from the first uncharged cycle of the mirror to now, or to the contract's end. */
export function areAllSoFar(
  cycles: readonly CycleNode[],
  node: ContractNode,
  { mirrored, before }: CycleReading,
  now: number,
): boolean {
  const [first, last] = [cycles[0], cycles.at(-1)];
  if (first === undefined || last === undefined) return false;
  if (first.cycleIndex > firstOpenCycle(mirrored, 0)) return false;
  if (last.cycleIndex >= lastCycle(node, mirrored)) return true;
  return Date.parse(last.cycleStartAt) > latestEnd(node, before, now);
}

/** Whether the reading of cycles can stop, because no later cycle matters. */
function isEnough(
  cycles: readonly CycleNode[],
  node: ContractNode,
  { mirrored, before, settledBefore, attemptCount, readsSettled = false, chargedEarly = 0 }: CycleReading,
  now: number,
): boolean {
  const last = cycles.at(-1);
  if (last === undefined) return true;
  if (last.cycleIndex < Math.max(chargedEarly, ...mirrored.keys())) return false;
  const startAt = Date.parse(last.cycleStartAt);
  if (startAt > now + MAX_LOOK_AHEAD_MS) return true;
  const isLast = last.cycleIndex >= lastCycle(node, mirrored);
  const isAfterEnd = isLast || startAt > latestEnd(node, before, now);
  if (readsSettled && !isAfterEnd) return false;
  if (cycles[0]?.cycleIndex === 1 && attemptCount !== undefined && attemptsIn(cycles) < attemptCount) return false;
  if (isLast) return true;
  if (!hasNextBilling(node)) return isAfterEnd || (before !== undefined && isUntouched(last));
  const next = nextCycle(cycles, mirrored, settledBefore);
  return next !== undefined && last.cycleIndex > next.cycleIndex;
}

/** Returns the number of attempts of these cycles; infinity if a cycle has more than a page of attempts. */
function attemptsIn(cycles: readonly CycleNode[]): number {
  return cycles.reduce((sum, { billingAttempts: { nodes, pageInfo } }) => {
    return sum + (pageInfo.hasNextPage ? Number.POSITIVE_INFINITY : nodes.length);
  }, 0);
}
