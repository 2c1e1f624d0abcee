import type { ContractNode } from "../api/operations/contracts.ts";
import type { CycleNode, CycleState } from "../api/operations/cycles.ts";
import {
  areAllSoFar,
  type CycleReading,
  type CycleSource,
  readAttempts,
  readCyclesAhead,
  readEditedLines,
  readFirstCycles,
  readFurtherCycles,
  readMore,
} from "./cycle-reader.ts";
import { isOfContract, nextCycle } from "./cycles.ts";
import { orderOf } from "./orders.ts";
import type { CycleHistory } from "./records.ts";

/** The cycles of a contract. */
export interface History {
  cycles: readonly CycleHistory[];
  /** See `nextCycle`. */
  next: CycleState | undefined;
}

/** The facts that are known before the cycles are read, and the changed orders that the cycles should show. */
export interface HistoryReading extends CycleReading {
  /** Gids of orders to read again even if the mirror has them as charged. */
  changedOrders: readonly string[];
}

/** Reads cycles and their attempts until the changed orders are found. @throws PlatformError; SdsError `bad_record` */
export async function readHistory(
  source: CycleSource,
  node: ContractNode,
  reading: HistoryReading,
  first: readonly CycleNode[],
): Promise<History> {
  const near = await readAll(source, node, reading, first);
  if (!hasUnseenOrder(reading, node, near.cycles)) return near;
  // A changed order was not found. Maybe the order belongs to no cycle, so the search has limits. First, some cycles
  // ahead are read, because a cycle may have been charged early. Then all cycles up to now are read, because the order
  // may belong to a settled cycle.
  const ahead = await readCyclesAhead(source, node, reading, near.open);
  const far = await readAll(source, node, reading, [...near.open, ...ahead]);
  const hasAll = !hasUnseenOrder(reading, node, far.cycles);
  if (hasAll || areAllSoFar(far.open, node, reading, source.now())) return far;
  const charged = ahead.filter(({ billingAttempts }) => billingAttempts.nodes.length > 0);
  const whole = { ...reading, readsSettled: true, chargedEarly: charged.at(-1)?.cycleIndex ?? 0 };
  return readAll(source, node, whole, await readFirstCycles(source, node, whole));
}

/** Returns `first`, further cycles, and settled cycles whose orders changed. Each cycle has all its attempts. */
async function readAll(
  source: CycleSource,
  node: ContractNode,
  reading: HistoryReading,
  first: readonly CycleNode[],
): Promise<History & { open: CycleNode[] }> {
  const further = await readFurtherCycles(source, node, reading, first);
  const open = [...first, ...further].filter((cycle) => isOfContract(node, cycle));
  const changed = await readChangedCycles(source, reading, open[0]?.cycleIndex ?? Number.POSITIVE_INFINITY);
  const cycles = await Promise.all([...changed, ...open].map((cycle) => readWhole(source, reading, cycle)));
  return { cycles, next: nextCycle(open, reading.mirrored, reading.settledBefore), open };
}

async function readWhole(source: CycleSource, reading: CycleReading, cycle: CycleNode): Promise<CycleHistory> {
  const [attempts, editedLines] = await Promise.all([
    readAttempts(source, reading, cycle),
    readEditedLines(source, reading, cycle),
  ]);
  return { ...cycle, attempts, editedLines };
}

/** Reads the settled cycles whose orders changed. */
async function readChangedCycles(source: CycleSource, reading: HistoryReading, firstOpen: number) {
  const changed = [...reading.mirrored].filter(
    ([cycleNumber, { shopifyId }]) =>
      cycleNumber > 0 && cycleNumber < firstOpen && reading.changedOrders.some((gid) => gid === shopifyId),
  );
  return (await Promise.all(changed.map(([index]) => readMore(source, reading, index, 1)))).flat();
}

/** Whether some changed order is not the checkout, and is neither in these cycles nor in the mirror. */
function hasUnseenOrder(
  { changedOrders, mirrored }: HistoryReading,
  { originOrder }: ContractNode,
  cycles: readonly CycleHistory[],
): boolean {
  const seen = new Set<string | null>(cycles.flatMap(({ attempts }) => attempts.flatMap(orderOf)));
  for (const { shopifyId } of mirrored.values()) seen.add(shopifyId);
  return changedOrders.some((gid) => !seen.has(gid) && gid !== originOrder?.id);
}
