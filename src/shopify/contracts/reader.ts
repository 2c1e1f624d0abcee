import type { ContractRead, RenewalRun } from "../../domain/platform/contract-read.ts";
import type { MirrorRecord } from "../../domain/records/platform-records.ts";
import type { Shop, ShopSettings } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { MirroredContract, MirrorStore } from "../../store/port/mirror.ts";
import { CONTRACT_LINES, type ContractNode } from "../api/operations/contracts.ts";
import type { CycleNode } from "../api/operations/cycles.ts";
import type { OrderNode } from "../api/operations/orders.ts";
import { allNodes } from "../api/paging.ts";
import { mayBeOneObject, PlatformError } from "../api/platform-error.ts";
import { LEVEL_TEXTS } from "../api/warnings.ts";
import { type CycleSource, readFirstCycles, readOpenCycles } from "./cycle-reader.ts";
import { isOfContract, type MirroredOrders, settledTime } from "./cycles.ts";
import { contractCurrency, foreignContract } from "./exchange.ts";
import { type History, type HistoryReading, readHistory } from "./history.ts";
import { expectedMoney, type NoteRounding, type RoundingReport } from "./money.ts";
import type { NodeLoader } from "./node-loader.ts";
import { type OrderReader, orderCosts, orderOf, readOrders } from "./orders.ts";
import { type CycleHistory, contractRecords, orderCycles } from "./records.ts";
import { byCycle, numberRenewals } from "./renewals.ts";
import { requireShape } from "./shapes.ts";
import { platformRecordError } from "./values.ts";

/**
 * The sources of contracts. Reading a contract makes its records: the customer, the contract, its checkout and its
 * billing cycles. Cycles that the mirror has as charged are left out, because they are over.
 */
export interface ContractSource extends CycleSource {
  loader: NodeLoader;
  mirror: Pick<MirrorStore, "ordersOf" | "contractOf" | "contractReads" | "newestRate">;
  settingsOf: (shopId: number) => Promise<ShopSettings>;
  reportRounding: RoundingReport;
  log: Pick<Log, "warn">;
}

type ReadColumns = "currency" | "renewals" | "renewalsBefore";

/** The records of a contract, and the data that they were made from. */
export interface ContractRecords extends Required<Pick<ContractRead, ReadColumns>> {
  records: MirrorRecord[];
  /** undefined for a contract that the platform does not have, or does not show yet. */
  node: ContractNode | undefined;
  cycles: readonly CycleHistory[];
  /** The orders that were read, by gid. */
  orders: ReadonlyMap<string, OrderNode>;
  /** The orders that the mirror had before this reading. */
  mirrored: MirroredOrders;
}

/** The facts that are known before a contract is read, and the source of its orders. */
interface ContractReading extends HistoryReading {
  contract: MirroredContract | undefined;
  settings: ShopSettings;
  /** See `ContractRead`. */
  renewals: readonly RenewalRun[];
  readOrder: OrderReader;
}

/**
 * Reads a contract and makes its records.
 * @param changedOrders gids of orders to read again even if the mirror has them as charged
 * @returns no records for a contract that the platform does not have
 * @throws PlatformError; SdsError `bad_record` for data that cannot be mirrored
 */
export async function readContract(
  source: ContractSource,
  shop: Shop,
  contractGid: string,
  changedOrders: readonly string[],
): Promise<ContractRecords> {
  const reading = await begin(source, shop, contractGid, changedOrders);
  const open = await readOpen(source, reading);
  // The orders are needed later. They are requested now, so that they share a query with the contract.
  const ahead = newOrders(reading, open ?? []).map(reading.readOrder);
  const [node, ...read] = await Promise.all([source.loader.contract(shop, contractGid), ...ahead]);
  const orders = new Map(read.flatMap((order) => (order === undefined ? [] : [[order.id, order]])));
  if (node === undefined) {
    const { mirrored, renewals } = reading;
    return { records: [], node, cycles: [], orders, mirrored, renewals, renewalsBefore: renewals, currency: null };
  }
  const rest = await readRest(source, shop, node, reading, open);
  return { ...rest, orders: new Map([...orders, ...rest.orders]) };
}

/** Completes a contract that was read with a page. @param attemptCount undefined if not known */
export async function readContractFrom(
  source: ContractSource,
  shop: Shop,
  node: ContractNode,
  attemptCount: number | undefined,
): Promise<ContractRecords> {
  return readRest(source, shop, node, { ...(await begin(source, shop, node.id)), attemptCount });
}

/** Completes a contract that was read with a page, and whose cycles are known. */
export async function readContractWith(
  source: ContractSource,
  shop: Shop,
  node: ContractNode,
  history: History,
): Promise<ContractRecords> {
  return readRecords(source, shop, node, await begin(source, shop, node.id), history);
}

async function begin(
  { loader, mirror, settingsOf, now }: ContractSource,
  shop: Shop,
  contractGid: string,
  changedOrders: readonly string[] = [],
): Promise<ContractReading> {
  // Loads the stored renewals before the orders. If another process renumbers renewals between the two steps, the
  // commit refuses this reading.
  const reads = await mirror.contractReads(shop, [contractGid]);
  const [contract, orders, settings] = await Promise.all([
    mirror.contractOf(shop, contractGid),
    mirror.ordersOf(shop, contractGid),
    settingsOf(shop.id),
  ]);
  const renewals = reads.get(contractGid)?.renewals ?? [];
  return {
    shop,
    contractGid,
    contract,
    before: contract?.subscription,
    mirrored: byCycle(orders, renewals),
    renewals,
    settings,
    settledBefore: settledTime(settings.retryDays, now()),
    changedOrders,
    readOrder: onceEach((gid) => loader.order(shop, gid)),
  };
}

/**
 * Reads the first cycles that can have changed.
 * @returns undefined if the mirror does not have the contract, or if the platform refuses the query for the cycles
 */
async function readOpen(source: ContractSource, reading: ContractReading): Promise<CycleNode[] | undefined> {
  const { before } = reading;
  if (before === undefined) return undefined;
  try {
    return await readOpenCycles(source, { ...reading, before });
  } catch (thrown) {
    // The cycles may be after the contract's end. `readFirstCycles` then reads fewer cycles, or throws.
    if (mayBeOneObject(thrown)) return undefined;
    throw thrown;
  }
}

/** Returns the gids of the changed orders, and of the attempts' orders that the mirror does not have. */
function newOrders({ mirrored, changedOrders }: ContractReading, cycles: readonly CycleNode[]): string[] {
  const charged = new Set([...mirrored.values()].map(({ shopifyId }) => shopifyId));
  const ofAttempts = cycles.flatMap(({ billingAttempts }) => billingAttempts.nodes.flatMap(orderOf));
  return [...new Set([...changedOrders, ...ofAttempts.filter((gid) => !charged.has(gid))])];
}

/** Returns a reader that reads each order only once. */
function onceEach(read: OrderReader): OrderReader {
  const started = new Map<string, Promise<OrderNode | undefined>>();
  return (gid) => {
    const reading = started.get(gid) ?? read(gid);
    started.set(gid, reading);
    return reading;
  };
}

/** Reads a contract's cycles, lines and orders. @param open its first cycles, if they are read already */
async function readRest(
  source: ContractSource,
  shop: Shop,
  node: ContractNode,
  reading: ContractReading,
  open?: readonly CycleNode[],
): Promise<ContractRecords> {
  const hasOpen = open?.some((cycle) => isOfContract(node, cycle)) === true;
  const first = hasOpen ? open : await readFirstCycles(source, node, reading);
  return readRecords(source, shop, node, reading, await readHistory(source, node, reading, first));
}

/** Reads the lines and orders of a contract whose cycles are known. */
async function readRecords(
  source: ContractSource,
  shop: Shop,
  node: ContractNode,
  { contract, mirrored, renewals: renewalsBefore, settings, changedOrders, readOrder }: ContractReading,
  { cycles, next }: History,
): Promise<ContractRecords> {
  const { client, mirror, reportRounding, now } = source;
  const { creditTitle, retryDays: retryPlan } = settings;
  const noteRounding: NoteRounding = (money) => reportRounding(shop, money);
  const customer = node.customer?.id ?? contract?.customerGid;
  if (customer === undefined && node.customer === undefined)
    throw new PlatformError("unauthorized", LEVEL_TEXTS[1], { status: 200, missingLevel: 1 });
  if (customer === undefined) throw platformRecordError(`the platform names no customer for ${node.id}`);
  const lines = await allNodes(node.lines, async (after) => {
    const { subscriptionContract } = await client.query(shop, CONTRACT_LINES, { id: node.id, after });
    return requireShape("lines of a contract", subscriptionContract?.lines);
  });
  const foreign = await foreignContract(mirror, shop, node.id, lines);
  const needsRate = foreign !== undefined && foreign.stored?.ratedAt == null;
  const orders = await readOrders(client, readOrder, { shop, node, cycles, mirrored, changedOrders, needsRate });
  const currency = foreign === undefined ? null : await contractCurrency(source, shop, foreign, orders.values());
  const rate = currency === null ? "own" : currency.rate;
  const expected = expectedMoney(lines, noteRounding, rate);
  const known = { node, mirrored, expected, noteRounding };
  const ofOrders = orderCycles(cycles, mirrored, next);
  const { numbers, runs: renewals } = numberRenewals(ofOrders, next, mirrored, renewalsBefore, now());
  const records = contractRecords({
    ...known,
    cycles: ofOrders,
    numbers,
    lines,
    rate,
    customer,
    isNew: contract === undefined,
    next,
    orders: orderCosts(orders, { ...known, creditTitle }),
    retryPlan,
    now: now(),
  });
  const nodes = new Map([...orders].map(([gid, order]) => [gid, order.node]));
  return { records, node, cycles, orders: nodes, mirrored, renewals, renewalsBefore, currency };
}
