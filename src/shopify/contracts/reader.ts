import type { MirrorRecord } from "../../domain/records/platform-records.ts";
import type { Shop, ShopSettings } from "../../domain/shop.ts";
import type { MirroredContract, MirrorStore } from "../../store/port/mirror.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { CONTRACT_LINES, type ContractLineNode, type ContractNode } from "../api/operations/contracts.ts";
import type { CycleNode } from "../api/operations/cycles.ts";
import type { OrderNode } from "../api/operations/orders.ts";
import { allNodes } from "../api/paging.ts";
import { isPlatformError } from "../api/platform-error.ts";
import { type CycleReader, createCycleReader } from "./cycle-reader.ts";
import { settledTime } from "./cycles.ts";
import { createHistoryReader, type History, type HistoryReading } from "./history.ts";
import { expectedMoney, type NoteRounding } from "./money.ts";
import type { NodeLoader } from "./node-loader.ts";
import { type OrderReader, orderOf, readOrders } from "./orders.ts";
import { contractRecords } from "./records.ts";
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

interface Dependencies {
  client: GraphqlClient;
  loader: NodeLoader;
  mirror: Pick<MirrorStore, "ordersOf" | "contractOf">;
  settingsOf: (shopId: number) => Promise<ShopSettings>;
  rounding: RoundingReport;
  now: () => number;
}

/** What is known before a contract is read, and where its orders come from. */
interface Reading extends HistoryReading {
  contract: MirroredContract | undefined;
  settings: ShopSettings;
  readOrder: OrderReader;
}

export function createContractReader(dependencies: Dependencies): ContractReader {
  const { client, loader, now } = dependencies;
  const cycleReader = createCycleReader(client, now);
  const historyReader = createHistoryReader(cycleReader, now);

  /** Reads the rest of a contract whose first cycles are read. */
  async function finish(shop: Shop, node: ContractNode, reading: Reading, first: readonly CycleNode[]) {
    return readRecords(dependencies, shop, node, reading, await historyReader.read(shop, node, reading, first));
  }

  return {
    async read(shop, contractGid, changedOrders) {
      const reading = await begin(dependencies, shop, contractGid, changedOrders);
      const open = await readOpen(dependencies, cycleReader, shop, reading);
      // The orders are needed later. Asked for now, they share a query with the contract.
      const ahead = newOrders(reading, open ?? []).map(reading.readOrder);
      const [node] = await Promise.all([loader.contract(shop, contractGid), ...ahead]);
      if (node === undefined) return [];
      return finish(shop, node, reading, open ?? (await cycleReader.readFirst(shop, node, reading)));
    },

    async readFrom(shop, node, attemptCount) {
      const reading = { ...(await begin(dependencies, shop, node.id, [])), attemptCount };
      return finish(shop, node, reading, await cycleReader.readFirst(shop, node, reading));
    },

    async readWith(shop, node, history) {
      return readRecords(dependencies, shop, node, await begin(dependencies, shop, node.id, []), history);
    },
  };
}

async function begin(
  { loader, mirror, settingsOf, now }: Dependencies,
  shop: Shop,
  contractGid: string,
  changedOrders: readonly string[],
): Promise<Reading> {
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
async function readOpen(
  { loader }: Dependencies,
  cycleReader: CycleReader,
  shop: Shop,
  reading: Reading,
): Promise<CycleNode[] | undefined> {
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

/** The orders that the mirror does not have as charged, or that changed. */
function newOrders({ mirrored, changedOrders }: Reading, cycles: readonly CycleNode[]): string[] {
  const charged = new Set([...mirrored.values()].map(({ shopifyId }) => shopifyId));
  const ofAttempts = cycles.flatMap(({ billingAttempts }) => billingAttempts.nodes.flatMap(orderOf));
  return [...new Set([...changedOrders, ...ofAttempts.filter((gid) => !charged.has(gid))])];
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

/** Reads what is left of a contract whose cycles are known: its lines and its orders. */
async function readRecords(
  { client, rounding, now }: Dependencies,
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

function readLines(client: GraphqlClient, shop: Shop, { id, lines }: ContractNode): Promise<ContractLineNode[]> {
  return allNodes(lines, async (after) => {
    const { subscriptionContract } = await client.query(shop, CONTRACT_LINES, { id, after });
    return requireShape("lines of a contract", subscriptionContract?.lines);
  });
}
