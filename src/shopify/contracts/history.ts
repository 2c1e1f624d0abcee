import type { Shop } from "../../domain/shop.ts";
import type { ContractNode } from "../api/operations/contracts.ts";
import type { CycleNode, CycleState } from "../api/operations/cycles.ts";
import { areAllSoFar, type CycleReader, type CycleReading } from "./cycle-reader.ts";
import { nextCycle } from "./cycles.ts";
import { orderOf } from "./orders.ts";
import type { CycleHistory } from "./records.ts";

/** The cycles of a contract. */
export interface History {
  cycles: readonly CycleHistory[];
  /** See `nextCycle`. */
  next: CycleState | undefined;
}

/** What is known before the cycles are read, and which orders they should show. */
export interface HistoryReading extends CycleReading {
  /** Gids of orders to read again even if the mirror has them as charged. */
  changedOrders: readonly string[];
}

/** Reads the cycles of a contract with all their attempts, until the changed orders are seen. */
export interface HistoryReader {
  /** @param first its first cycles, which are read already @throws PlatformError; SdsError `bad_record` */
  read(shop: Shop, node: ContractNode, reading: HistoryReading, first: readonly CycleNode[]): Promise<History>;
}

export function createHistoryReader(cycleReader: CycleReader, now: () => number): HistoryReader {
  /** Reads the cycles after the first ones, the settled ones whose orders changed, and all of their attempts. */
  async function readAll(
    shop: Shop,
    node: ContractNode,
    reading: HistoryReading,
    first: readonly CycleNode[],
  ): Promise<History & { open: CycleNode[] }> {
    const open = [...first, ...(await cycleReader.readFurther(shop, node, reading, first))];
    const changed = await readChangedCycles(shop, node, reading, open[0]?.cycleIndex ?? 1);
    const cycles = await Promise.all([...changed, ...open].map((cycle) => readCycle(shop, node, cycle)));
    return { cycles, next: nextCycle(open, reading.mirrored, reading.settledBefore), open };
  }

  async function readCycle(shop: Shop, node: ContractNode, cycle: CycleNode): Promise<CycleHistory> {
    const [attempts, editedLines] = await Promise.all([
      cycleReader.attempts(shop, node.id, cycle),
      cycleReader.editedLines(shop, node.id, cycle),
    ]);
    return { ...cycle, attempts, editedLines };
  }

  /** Reads the settled cycles whose orders changed. */
  async function readChangedCycles(
    shop: Shop,
    node: ContractNode,
    { mirrored, changedOrders }: HistoryReading,
    firstOpen: number,
  ): Promise<CycleNode[]> {
    const changed = [...mirrored].filter(
      ([cycleNumber, { shopifyId }]) =>
        cycleNumber > 0 && cycleNumber < firstOpen && changedOrders.some((gid) => gid === shopifyId),
    );
    return (await Promise.all(changed.map(([index]) => cycleReader.readOne(shop, node.id, index)))).flat();
  }

  return {
    async read(shop, node, reading, first) {
      const near = await readAll(shop, node, reading, first);
      if (!hasUnseenOrder(reading, node, near.cycles)) return near;
      // It belongs to a cycle that was charged early, or to one that counted as settled, or to none at all. So both
      // searches have an end: some cycles ahead, and the cycles up to now.
      const ahead = await cycleReader.readAhead(shop, node.id, near.open);
      const far = await readAll(shop, node, reading, [...near.open, ...ahead]);
      const isFound = !hasUnseenOrder(reading, node, far.cycles);
      if (isFound || areAllSoFar(far.open, node, reading, now())) return far;
      const charged = ahead.filter(({ billingAttempts }) => billingAttempts.nodes.length > 0);
      const whole = { ...reading, readsSettled: true, chargedEarly: charged.at(-1)?.cycleIndex ?? 0 };
      return readAll(shop, node, whole, await cycleReader.readFirst(shop, node, whole));
    },
  };
}

/** Whether a changed order is in none of the cycles that were read, and not in the mirror. */
function hasUnseenOrder(
  { changedOrders, mirrored }: HistoryReading,
  { originOrder }: ContractNode,
  cycles: readonly CycleHistory[],
): boolean {
  const seen = new Set<string | null>(cycles.flatMap(({ attempts }) => attempts.flatMap(orderOf)));
  for (const { shopifyId } of mirrored.values()) seen.add(shopifyId);
  return changedOrders.some((gid) => !seen.has(gid) && gid !== originOrder?.id);
}
