import type { BillingCycleRecord, MirrorRecord, OrderMoney } from "../../domain/platform-records.ts";
import type { Order } from "../../domain/resources.ts";
import type { Shop, ShopSettings } from "../../domain/shop.ts";
import type { MirrorStore } from "../../store/mirror.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import {
  type AttemptNode,
  BILLING_CYCLES,
  CONTRACT_EXISTS,
  CONTRACT_LINES,
  CONTRACT_WITH_CYCLES,
  type ContractLineNode,
  type ContractNode,
  CYCLE_ATTEMPTS,
  CYCLES_AT_ONCE,
  type CycleNode,
  ORDER_LINES,
  ORDERS_AT_ONCE,
  ORDERS_BY_ID,
  type OrderLineNode,
  type OrderNode,
} from "../api/operations.ts";
import { restOf } from "../api/paging.ts";
import { PlatformError } from "../api/platform-error.ts";
import { billingAttempt, checkoutAttempt, customerRecord, dateFrom, expectedMoney, orderMoney, subscriptionRecord } from "./translate.ts";

const DAY = 86_400_000;
/** A skipped cycle can be taken back until it is over, and for a while we look. */
const SKIP_SETTLES_AFTER = 30 * DAY;
/** At most; in days. */
const INTERVAL_DAYS: Record<string, number> = { DAY: 1, WEEK: 7, MONTH: 31, YEAR: 366 };

/**
 * Reads what the platform has of a contract and makes records of it: the holder, the contract, its checkout and its billing cycles. The cycles that the mirror has
 * charged are left out, for they are over.
 */
export class ContractReader {
  private readonly api: GraphqlClient;
  private readonly mirror: MirrorStore;
  private readonly settingsOf: (shopId: number) => Promise<ShopSettings>;
  private readonly now: () => number;

  constructor(api: GraphqlClient, mirror: MirrorStore, settingsOf: (shopId: number) => Promise<ShopSettings>, now: () => number) {
    this.api = api;
    this.mirror = mirror;
    this.settingsOf = settingsOf;
    this.now = now;
  }

  /**
   * @param orders gids of orders to read again even where the mirror has them as charged
   * @returns nothing for a contract that the platform doesn't know
   * @throws PlatformError; SdsError `bad_record` for what makes no sense
   */
  async read(shop: Shop, gid: string, orders: readonly string[] = []): Promise<MirrorRecord[]> {
    const known = await this.mirror.ordersOf(shop, gid);
    const from = this.firstOpenCycle(known, orders);
    const range = rangeFrom(gid, from, CYCLES_AT_ONCE);
    const answer = await this.api.query(shop, CONTRACT_WITH_CYCLES, range).catch(async (thrown: unknown) => {
      // The cycles of a contract that doesn't exist are an error, whatever the rest of the question.
      const refused = thrown instanceof PlatformError && thrown.reason === "refused";
      if (refused && (await this.api.query(shop, CONTRACT_EXISTS, { id: gid })).subscriptionContract === null) return undefined;
      throw thrown;
    });
    if (answer === undefined || answer.subscriptionContract === null) return [];
    return this.records(shop, answer.subscriptionContract, known, answer.subscriptionBillingCycles.nodes, orders);
  }

  /** The same for a contract that a page of contracts brought. */
  async readFrom(shop: Shop, node: ContractNode): Promise<MirrorRecord[]> {
    const known = await this.mirror.ordersOf(shop, node.id);
    const from = this.firstOpenCycle(known, []);
    const { subscriptionBillingCycles } = await this.api.query(shop, BILLING_CYCLES, rangeFrom(node.id, from, this.cyclesAhead(node, from)));
    return this.records(shop, node, known, subscriptionBillingCycles.nodes, []);
  }

  private async records(shop: Shop, node: ContractNode, known: Map<number, Order>, first: CycleNode[], again: readonly string[]): Promise<MirrorRecord[]> {
    const { retryDays: retryPlan, creditTitle } = await this.settingsOf(shop.id);
    const holderBefore = await this.mirror.customerGidOf(shop, node.id);
    const holder = node.customer?.id ?? holderBefore;
    if (holder === undefined) throw new PlatformError("refused", `the platform names no customer for ${node.id}`);
    const lines = await this.linesOf(shop, node);
    const subscription = subscriptionRecord(node, lines, holder);
    const expected = expectedMoney(lines);
    const cycles = [...first, ...(await this.moreCycles(shop, node, first))];
    const attempts = await Promise.all(cycles.map((cycle) => this.attemptsOf(shop, node.id, cycle)));
    const orders = await this.orders(shop, node, known, attempts.flat(), { again, creditTitle, expected });
    const shared = { type: "billing_cycle" as const, subscription: node.id, expected, retryPlan };

    const records: BillingCycleRecord[] = [];
    const checkout = orders.checkout;
    if (checkout !== undefined) {
      const attempt = checkoutAttempt(checkout.node, checkout.money);
      records.push({
        ...shared,
        source: "checkout",
        cycleNumber: 0,
        skipped: false,
        expectedAt: attempt.startedAt,
        attempts: [attempt],
        expected: checkout.money,
      });
    }
    for (const [index, { cycleIndex, skipped, billingAttemptExpectedDate }] of cycles.entries()) {
      const told = (attempts[index] ?? []).map((each) => billingAttempt(each, orders.money, expected, this.now()));
      if (told.length === 0 && !skipped && !known.has(cycleIndex)) continue;
      const expectedAt = dateFrom(billingAttemptExpectedDate);
      records.push({ ...shared, source: "recurring", cycleNumber: cycleIndex, skipped, expectedAt, attempts: told });
    }
    const person = node.customer === null ? [] : [customerRecord(node.customer)];
    // Whether a cancellation is involuntary hangs on the last order, so that orders come first; of a contract seen first there is nothing to cancel.
    return holderBefore === undefined ? [...person, subscription, ...records] : [...person, ...records, subscription];
  }

  /** The first cycle that may still change, or that an order to be read again belongs to. */
  private firstOpenCycle(known: Map<number, Order>, again: readonly string[]): number {
    let cycle = 1;
    while (this.isSettled(known.get(cycle))) cycle += 1;
    for (const [number, { shopifyId }] of known) {
      if (number > 0 && number < cycle && shopifyId !== null && again.includes(shopifyId)) cycle = number;
    }
    return cycle;
  }

  private isSettled(order: Order | undefined): boolean {
    if (order === undefined) return false;
    const { status, billedAt } = order;
    return status === "PAID" || status === "RECOVERED" || (status === "SKIPPED" && Date.parse(billedAt) < this.now() - SKIP_SETTLES_AFTER);
  }

  /** Cycles go on without end: they are looked at until two intervals beyond the next billing, for those can be skipped ahead. */
  private horizon({ nextBillingDate, billingPolicy }: ContractNode): number {
    const next = nextBillingDate === null ? 0 : Date.parse(nextBillingDate);
    return Math.max(this.now(), next) + 2 * longestInterval(billingPolicy);
  }

  /** About how many cycles lie before the horizon: asking for more costs points. */
  private cyclesAhead(node: ContractNode, from: number): number {
    const all = Math.ceil((this.horizon(node) - Date.parse(node.createdAt)) / longestInterval(node.billingPolicy)) + 1;
    return Math.min(Math.max(all - from + 1, 1), CYCLES_AT_ONCE);
  }

  private async moreCycles(shop: Shop, node: ContractNode, first: CycleNode[]): Promise<CycleNode[]> {
    const horizon = this.horizon(node);
    const more: CycleNode[] = [];
    for (let last = first.at(-1); last !== undefined && Date.parse(last.billingAttemptExpectedDate) <= horizon; last = more.at(-1)) {
      const { subscriptionBillingCycles } = await this.api.query(shop, BILLING_CYCLES, rangeFrom(node.id, last.cycleIndex + 1, CYCLES_AT_ONCE));
      // What does not lead on would be followed for ever.
      if ((subscriptionBillingCycles.nodes.at(-1)?.cycleIndex ?? 0) <= last.cycleIndex) break;
      more.push(...subscriptionBillingCycles.nodes);
    }
    return more;
  }

  private async attemptsOf(shop: Shop, id: string, { cycleIndex, billingAttempts }: CycleNode): Promise<AttemptNode[]> {
    const more = await restOf(billingAttempts, async (after) => {
      const answer = await this.api.query(shop, CYCLE_ATTEMPTS, { id, index: cycleIndex, after });
      return answer.subscriptionBillingCycle?.billingAttempts;
    });
    return [...billingAttempts.nodes, ...more];
  }

  private async linesOf(shop: Shop, { id, lines }: ContractNode): Promise<ContractLineNode[]> {
    const more = await restOf(lines, async (after) => (await this.api.query(shop, CONTRACT_LINES, { id, after })).subscriptionContract?.lines);
    return [...lines.nodes, ...more];
  }

  /** The money of the attempts' orders, and the checkout's order where it is to be told of. What the mirror has of a charged order is not read twice. */
  private async orders(
    shop: Shop,
    node: ContractNode,
    known: Map<number, Order>,
    attempts: AttemptNode[],
    { again, creditTitle, expected }: { again: readonly string[]; creditTitle: string; expected: OrderMoney },
  ) {
    const mirrored = new Map([...known.values()].filter(isCharged).map((order) => [order.shopifyId, order]));
    const isNew = (gid: string) => !mirrored.has(gid) || again.includes(gid);
    const charged = attempts.flatMap(({ state }) =>
      state.__typename === "SubscriptionBillingAttemptSuccessState" && state.order !== null ? [state.order.id] : [],
    );
    const origin = node.originOrder === null ? [] : [node.originOrder.id];
    const wanted = [...new Set([...origin, ...charged])].filter(isNew);
    const read = new Map<string, { node: OrderNode; money: OrderMoney }>();
    for (let start = 0; start < wanted.length; start += ORDERS_AT_ONCE) {
      const { nodes } = await this.api.query(shop, ORDERS_BY_ID, { ids: wanted.slice(start, start + ORDERS_AT_ONCE) });
      for (const order of nodes) {
        if (order !== null) read.set(order.id, { node: order, money: withLines(orderMoney(await this.orderLines(shop, order), creditTitle), expected) });
      }
    }
    return {
      checkout: node.originOrder === null ? undefined : read.get(node.originOrder.id),
      money: (gid: string): OrderMoney | undefined => read.get(gid)?.money ?? mirrored.get(gid),
    };
  }

  private async orderLines(shop: Shop, { id, lineItems }: OrderNode): Promise<OrderLineNode[]> {
    const more = await restOf(lineItems, async (after) => (await this.api.query(shop, ORDER_LINES, { id, after })).order?.lineItems);
    return [...lineItems.nodes, ...more];
  }
}

function longestInterval({ interval, intervalCount }: ContractNode["billingPolicy"]): number {
  return intervalCount * (INTERVAL_DAYS[interval] ?? 31) * DAY;
}

function rangeFrom(id: string, from: number, count: number) {
  return { id, from, to: from + count - 1, count };
}

/** Where the app may not see the products of an order's lines, the contract's lines say what was ordered. */
function withLines(money: OrderMoney, expected: OrderMoney): OrderMoney {
  return money.lines.length > 0 ? money : { ...money, lines: expected.lines };
}

function isCharged({ status }: Order): boolean {
  return status === "PAID" || status === "RECOVERED";
}
