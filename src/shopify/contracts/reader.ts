import type { MirrorRecord } from "../../domain/platform-records.ts";
import type { Shop, ShopSettings } from "../../domain/shop.ts";
import type { MirroredContract, MirrorStore } from "../../store/mirror.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { CONTRACT_LINES, type ContractLineNode, type ContractNode } from "../api/operations/contracts.ts";
import type { CycleNode, CycleState } from "../api/operations/cycles.ts";
import type { OrderNode } from "../api/operations/orders.ts";
import { allNodes } from "../api/paging.ts";
import { isPlatformError } from "../api/platform-error.ts";
import { areAllSoFar, type CycleReading, createCycleReader } from "./cycle-reader.ts";
import { nextCycle, settledTime } from "./cycles.ts";
import { expectedMoney, type NoteRounding } from "./money.ts";
import type { NodeLoader } from "./node-loader.ts";
import { type OrderReader, orderOf, readOrders } from "./orders.ts";
import { type CycleHistory, contractRecords } from "./records.ts";
import type { RoundingReport } from "./rounding-report.ts";
import { requireShape } from "./shapes.ts";
import { badRecord } from "./values.ts";

/**
 * Reads contracts from the platform and makes records of them: the customer, the contract, its checkout and its billing
 * cycles. Cycles that the mirror has as charged are left out, because they are over.
 */
export interface ContractReader {
  /**
   * @param changedOrders gids of orders to read again even if the mirror has them as charged
   * @returns no records for a contract that the platform does not have
   * @throws PlatformError; SdsError `bad_record` for data that cannot be mirrored
   */
  read(shop: Shop, contractGid: string, changedOrders: readonly string[]): Promise<MirrorRecord[]>;
  /**
   * The same for a contract that is read already.
   * @param attemptCount how many attempts it has; undefined if that is not known
   */
  readFrom(shop: Shop, node: ContractNode, attemptCount: number | undefined): Promise<MirrorRecord[]>;
  /** The same for a contract whose cycles are known too. */
  readWith(shop: Shop, node: ContractNode, history: History): Promise<MirrorRecord[]>;
}

/** The cycles of a contract. */
export interface History {
  cycles: readonly CycleHistory[];
  /** See `nextCycle`. */
  next: CycleState | undefined;
}

interface Dependencies {
  client: GraphqlClient;
  loader: NodeLoader;
  mirror: Pick<MirrorStore, "ordersOf" | "contractOf">;
  settingsOf: (shopId: number) => Promise<ShopSettings>;
  rounding: RoundingReport;
  now: () => number;
}

/** What is known before a contract is read, and where its orders come from. */
interface Reading extends CycleReading {
  contract: MirroredContract | undefined;
  settings: ShopSettings;
  changedOrders: readonly string[];
  readOrder: OrderReader;
}

export function createContractReader(dependencies: Dependencies): ContractReader {
  const { client, loader, mirror, settingsOf, rounding, now } = dependencies;
  const cycleReader = createCycleReader(client, now);

  async function begin(shop: Shop, contractGid: string, changedOrders: readonly string[]): Promise<Reading> {
    const [contract, mirrored, settings] = await Promise.all([
      mirror.contractOf(shop, contractGid),
      mirror.ordersOf(shop, contractGid),
      settingsOf(shop.id),
    ]);
    return {
      contractGid,
      contract,
      before: contract?.subscription,
      mirrored,
      settings,
      settledBefore: settledTime(settings.retryDays, now()),
      changedOrders,
      readOrder: onceEach((gid) => loader.order(shop, gid)),
    };
  }

  /** @returns undefined for a contract that the mirror does not have, or that the platform does not have any more */
  async function readOpen(shop: Shop, reading: Reading): Promise<CycleNode[] | undefined> {
    const { before } = reading;
    if (before === undefined) return undefined;
    try {
      return await cycleReader.readOpen(shop, { ...reading, before });
    } catch (thrown) {
      // The platform refuses to show the cycles of a contract that it does not have.
      const isGone =
        isPlatformError(thrown, "refused") && (await loader.contract(shop, reading.contractGid)) === undefined;
      if (isGone) return undefined;
      throw thrown;
    }
  }

  /** Reads the rest of a contract whose first cycles are read. */
  async function finish(shop: Shop, node: ContractNode, reading: Reading, first: readonly CycleNode[]) {
    const near = await readHistory(shop, node, reading, first);
    if (!hasUnseenOrder(reading, node, near.cycles)) return make(shop, node, reading, near);
    // It belongs to a cycle that was charged early, or to one that counted as settled, or to none at all. So both
    // searches have an end: some cycles ahead, and the cycles up to now.
    const ahead = await cycleReader.readAhead(shop, node.id, near.open);
    const far = await readHistory(shop, node, reading, [...near.open, ...ahead]);
    const isFound = !hasUnseenOrder(reading, node, far.cycles);
    if (isFound || areAllSoFar(far.open, node, reading, now())) return make(shop, node, reading, far);
    const charged = ahead.filter(({ billingAttempts }) => billingAttempts.nodes.length > 0);
    const whole = { ...reading, readsSettled: true, chargedEarly: charged.at(-1)?.cycleIndex ?? 0 };
    const all = await readHistory(shop, node, whole, await cycleReader.readFirst(shop, node, whole));
    return make(shop, node, whole, all);
  }

  /** Reads the cycles after the first ones, the settled ones whose orders changed, and all of their attempts. */
  async function readHistory(
    shop: Shop,
    node: ContractNode,
    reading: Reading,
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
    { mirrored, changedOrders }: Reading,
    firstOpen: number,
  ): Promise<CycleNode[]> {
    const changed = [...mirrored].filter(
      ([cycleNumber, { shopifyId }]) =>
        cycleNumber > 0 && cycleNumber < firstOpen && changedOrders.some((gid) => gid === shopifyId),
    );
    return (await Promise.all(changed.map(([index]) => cycleReader.readOne(shop, node.id, index)))).flat();
  }

  async function make(
    shop: Shop,
    node: ContractNode,
    { contract, mirrored, settings, changedOrders, readOrder }: Reading,
    { cycles, next }: History,
  ): Promise<MirrorRecord[]> {
    const { creditTitle, retryDays: retryPlan } = settings;
    const noteRounding: NoteRounding = (money) => rounding.add(shop, money);
    const customer = node.customer?.id ?? contract?.customerGid;
    if (customer === undefined) throw badRecord(`the platform names no customer for ${node.id}`);
    const lines = await readLines(client, shop, node);
    const orders = await readOrders(client, readOrder, shop, {
      contractGid: node.id,
      checkout: node.originOrder?.id,
      attempts: cycles.flatMap(({ attempts }) => attempts),
      mirrored,
      changedOrders,
      creditTitle,
      expected: expectedMoney(lines, noteRounding),
      noteRounding,
    });
    const isNew = contract === undefined;
    const known = { node, lines, customer, isNew, mirrored, cycles, next, orders };
    return contractRecords({ ...known, retryPlan, noteRounding, now: now() });
  }

  return {
    async read(shop, contractGid, changedOrders) {
      const reading = await begin(shop, contractGid, changedOrders);
      const open = await readOpen(shop, reading);
      // The orders are needed later. Asked for now, they share a query with the contract.
      const ahead = newOrders(reading, open ?? []).map(reading.readOrder);
      const [node] = await Promise.all([loader.contract(shop, contractGid), ...ahead]);
      if (node === undefined) return [];
      return finish(shop, node, reading, open ?? (await cycleReader.readFirst(shop, node, reading)));
    },

    async readFrom(shop, node, attemptCount) {
      const reading = { ...(await begin(shop, node.id, [])), attemptCount };
      return finish(shop, node, reading, await cycleReader.readFirst(shop, node, reading));
    },

    async readWith(shop, node, history) {
      return make(shop, node, await begin(shop, node.id, []), history);
    },
  };
}

/** The orders that the mirror does not have as charged, or that changed. */
function newOrders({ mirrored, changedOrders }: Reading, cycles: readonly CycleNode[]): string[] {
  const charged = new Set([...mirrored.values()].map(({ shopifyId }) => shopifyId));
  const ofAttempts = cycles.flatMap(({ billingAttempts }) => billingAttempts.nodes.flatMap(orderOf));
  return [...new Set([...changedOrders, ...ofAttempts.filter((gid) => !charged.has(gid))])];
}

/** Whether a changed order is in none of the cycles that were read, and not in the mirror. */
function hasUnseenOrder(
  { changedOrders, mirrored }: Reading,
  { originOrder }: ContractNode,
  cycles: readonly CycleHistory[],
): boolean {
  const seen = new Set<string | null>(cycles.flatMap(({ attempts }) => attempts.flatMap(orderOf)));
  for (const { shopifyId } of mirrored.values()) seen.add(shopifyId);
  return changedOrders.some((gid) => !seen.has(gid) && gid !== originOrder?.id);
}

/** Reads each order once, however often it is asked for. */
function onceEach(read: OrderReader): OrderReader {
  const started = new Map<string, Promise<OrderNode | undefined>>();
  return (gid) => {
    const reading = started.get(gid) ?? read(gid);
    started.set(gid, reading);
    return reading;
  };
}

function readLines(client: GraphqlClient, shop: Shop, { id, lines }: ContractNode): Promise<ContractLineNode[]> {
  return allNodes(lines, async (after) => {
    const { subscriptionContract } = await client.query(shop, CONTRACT_LINES, { id, after });
    return requireShape("lines of a contract", subscriptionContract?.lines);
  });
}
