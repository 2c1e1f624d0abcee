import type { BillingCycleRecord, MirrorRecord } from "../../domain/platform-records.ts";
import type { Shop, ShopSettings } from "../../domain/shop.ts";
import type { MirrorStore } from "../../store/mirror.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { CONTRACT_WITH_CYCLES, type CycleNode, MAX_CYCLES_PER_QUERY } from "../api/operations/billing.ts";
import {
  CONTRACT_EXISTS,
  CONTRACT_LINES,
  type ContractLineNode,
  type ContractNode,
} from "../api/operations/contracts.ts";
import { allNodes } from "../api/paging.ts";
import { isPlatformError, PlatformError } from "../api/platform-error.ts";
import {
  cycleRange,
  firstOpenCycle,
  type MirroredOrders,
  readAttempts,
  readFirstCycles,
  readFurtherCycles,
} from "./cycles.ts";
import { expectedMoney, type NoteRounding } from "./money.ts";
import { readOrders } from "./orders.ts";
import type { RoundingReport } from "./rounding-report.ts";
import { billingAttempt, checkoutAttempt, customerRecord, hasEnded, subscriptionRecord } from "./translate.ts";
import { dateFrom } from "./values.ts";

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
  /** The same for a contract that is read already. */
  readFrom(shop: Shop, node: ContractNode): Promise<MirrorRecord[]>;
}

interface Dependencies {
  client: GraphqlClient;
  mirror: Pick<MirrorStore, "ordersOf" | "customerGidOf">;
  settingsOf: (shopId: number) => Promise<ShopSettings>;
  rounding: RoundingReport;
  now: () => number;
}

interface ContractParts {
  node: ContractNode;
  mirrored: MirroredOrders;
  /** The first cycles; the further ones are not read yet. */
  cycles: CycleNode[];
  changedOrders: readonly string[];
}

export function createContractReader(dependencies: Dependencies): ContractReader {
  const { client, mirror, now } = dependencies;
  return {
    async read(shop, contractGid, changedOrders) {
      const mirrored = await mirror.ordersOf(shop, contractGid);
      const from = firstOpenCycle(mirrored, changedOrders, now());
      const answer = await readWithCycles(client, shop, contractGid, from);
      if (answer === undefined || answer.subscriptionContract === null) return [];
      const { subscriptionContract: node, subscriptionBillingCycles } = answer;
      const cycles = subscriptionBillingCycles.nodes;
      return makeRecords(dependencies, shop, { node, mirrored, cycles, changedOrders });
    },

    async readFrom(shop, node) {
      const mirrored = await mirror.ordersOf(shop, node.id);
      const from = firstOpenCycle(mirrored, [], now());
      const cycles = await readFirstCycles(client, shop, node, from, now());
      return makeRecords(dependencies, shop, { node, mirrored, cycles, changedOrders: [] });
    },
  };
}

/**
 * Reads a contract and its first cycles.
 * @returns undefined for a contract that does not exist: then its cycles are an error, and the whole query fails
 */
async function readWithCycles(client: GraphqlClient, shop: Shop, contractGid: string, from: number) {
  try {
    return await client.query(shop, CONTRACT_WITH_CYCLES, cycleRange(contractGid, from, MAX_CYCLES_PER_QUERY));
  } catch (thrown) {
    if (!isPlatformError(thrown, "refused")) throw thrown;
    const { subscriptionContract } = await client.query(shop, CONTRACT_EXISTS, { id: contractGid });
    if (subscriptionContract !== null) throw thrown;
    return undefined;
  }
}

async function makeRecords(
  { client, mirror, settingsOf, rounding, now }: Dependencies,
  shop: Shop,
  { node, mirrored, cycles: first, changedOrders }: ContractParts,
): Promise<MirrorRecord[]> {
  const { retryDays: retryPlan, creditTitle } = await settingsOf(shop.id);
  const customerBefore = await mirror.customerGidOf(shop, node.id);
  const customer = node.customer?.id ?? customerBefore;
  if (customer === undefined) throw new PlatformError("refused", `the platform names no customer for ${node.id}`);
  const lines = await readLines(client, shop, node);
  const subscription = subscriptionRecord(node, lines, customer);
  const noteRounding: NoteRounding = (money) => rounding.add(shop, money);
  const expected = expectedMoney(lines, noteRounding);
  const cycles = [...first, ...(await readFurtherCycles(client, shop, node, first, now()))];
  const attempts = await Promise.all(cycles.map((cycle) => readAttempts(client, shop, node.id, cycle)));
  const checkoutGid = node.originOrder?.id;
  const orderRequest = {
    checkout: checkoutGid,
    attempts: attempts.flat(),
    mirrored,
    changedOrders,
    creditTitle,
    expected,
    noteRounding,
  };
  const orders = await readOrders(client, shop, orderRequest);

  const contractEnded = hasEnded(node);
  const shared = { type: "billing_cycle" as const, subscription: node.id, contractEnded, expected, retryPlan };
  const records: BillingCycleRecord[] = [];
  if (orders.checkout !== undefined) {
    const { money } = orders.checkout;
    const attempt = checkoutAttempt(orders.checkout.node, money);
    const cycle = {
      cycleNumber: 0,
      skipped: false,
      expectedAt: attempt.startedAt,
      attempts: [attempt],
      expected: money,
    };
    records.push({ ...shared, source: "checkout", ...cycle });
  }
  for (const [index, { cycleIndex, skipped, billingAttemptExpectedDate }] of cycles.entries()) {
    const ofCycle = (attempts[index] ?? []).map((each) => billingAttempt(each, orders.moneyOf, expected, now()));
    if (ofCycle.length === 0 && !skipped && !mirrored.has(cycleIndex)) continue;
    const expectedAt = dateFrom(billingAttemptExpectedDate);
    records.push({ ...shared, source: "recurring", cycleNumber: cycleIndex, skipped, expectedAt, attempts: ofCycle });
  }
  const person = node.customer === null ? [] : [customerRecord(node.customer)];
  // The last order decides whether a cancellation is involuntary, so orders go first. A new contract goes before its
  // orders, because no order is accepted without its contract.
  const isNew = customerBefore === undefined;
  return isNew ? [...person, subscription, ...records] : [...person, ...records, subscription];
}

function readLines(client: GraphqlClient, shop: Shop, { id, lines }: ContractNode): Promise<ContractLineNode[]> {
  return allNodes(lines, async (after) => {
    const { subscriptionContract } = await client.query(shop, CONTRACT_LINES, { id, after });
    return subscriptionContract?.lines;
  });
}
