import { isDeepStrictEqual } from "node:util";
import type { Customer, Order, Subscription } from "../../../src/domain/resources.ts";
import type { ConnectedShop } from "../../../test/support/connected.ts";
import type { ContractRow } from "../../../test/support/platform/rows.ts";
import {
  contractsOf,
  type ExpectedOrder,
  expectedOrders,
  expectedSubscription,
  iso,
  noteRates,
  type Rows,
  ratesOf,
} from "./expected.ts";

/** The objects whose mirrored state is not checked, by gid. */
export type Unchecked = ReadonlySet<string>;

interface Mirror {
  customers: Customer[];
  subscriptions: Subscription[];
  orders: Order[];
}

async function mirrorOf({ shop }: ConnectedShop): Promise<Mirror> {
  return {
    customers: (await shop.all("customers")) as Customer[],
    subscriptions: (await shop.all("subscriptions")) as Subscription[],
    orders: (await shop.all("orders")) as Order[],
  };
}

/** Compares the mirror with the platform's rows. @returns the differences */
export async function differences(all: ConnectedShop, unchecked: Unchecked): Promise<string[]> {
  const mirror = await mirrorOf(all);
  const found: string[] = [];
  for (const contract of contractsOf(all.remote)) {
    const gid = all.remote.gid(contract);
    if (unchecked.has(gid)) continue;
    const own = contractDifferences(all, mirror, contract);
    if (own.length > 0) found.push(...own.map((each) => `${gid}: ${each}`), `${gid}: ${summaryOf(contract)}`);
  }
  const gids = new Set(all.remote.ids("contract"));
  for (const { shopifyId } of mirror.subscriptions)
    if (!gids.has(shopifyId)) found.push(`${shopifyId}: the platform does not have it`);
  return [...found, ...customerDifferences(all, mirror, unchecked)];
}

function contractDifferences({ remote, test }: ConnectedShop, mirror: Mirror, contract: ContractRow): string[] {
  const row = mirror.subscriptions.find(({ shopifyId }) => shopifyId === remote.gid(contract));
  if (row === undefined) return ["is not mirrored"];
  const customer = mirror.customers.find(({ id }) => id === row.customerId)?.shopifyId;
  const found = customer === remote.gid(contract.customer) ? [] : [`has the customer ${customer}`];
  // A cancelled contract that expires keeps its date of cancellation.
  if (row.cancelledAt !== null && row.status !== "CANCELLED" && row.status !== "EXPIRED")
    found.push(`cancelled at ${row.cancelledAt}, although ${row.status}`);
  const own = mirror.orders.filter(({ contractId }) => contractId === row.id);
  const byRate = ratesOf(remote, contract).map((rate) => [
    ...unequal("", expectedSubscription(remote, contract, rate, test.clock.ms), row),
    ...orderDifferences(expectedOrders(remote, contract, rate, test.clock.ms), own),
  ]);
  const [least = []] = byRate.toSorted((a, b) => a.length - b.length);
  return [...found, ...least];
}

/** Describes a contract, to explain a difference. */
function summaryOf({
  status,
  interval,
  intervalCount,
  currency,
  createdAt,
  attempts,
  skips,
  edits,
}: ContractRow): string {
  const tried = attempts.map(({ cycleIndex, state, createdAt: at }) => `${cycleIndex} ${state} ${iso(at)}`);
  const terms = `${status}, every ${intervalCount} ${interval} in ${currency} since ${iso(createdAt)}`;
  return `${terms}; attempts ${tried.join(", ")}; skips ${JSON.stringify([...(skips ?? [])])}; edits ${[...(edits?.keys() ?? [])]}`;
}

/**
 * Compares the orders of a contract. An order is found by its gid. If no order has the gid, the order is found by its
 * number or its content. The number can differ from the cycle, because the app can leave cycles out. It can also
 * differ if the app charges a cycle after it skipped a later cycle.
 */
function orderDifferences(expected: ReadonlyMap<number, ExpectedOrder>, orders: readonly Order[]): string[] {
  const found: string[] = [];
  const left = new Set(orders.toSorted((a, b) => a.cycleNumber - b.cycleNumber));
  if (new Set(orders.map(({ cycleNumber }) => cycleNumber)).size < orders.length)
    found.push("two orders have the same number");
  const open = new Map([...expected].toSorted(([a], [b]) => a - b));
  function match(isOf: (row: Order, cycle: number, order: Rows<Order>) => boolean): void {
    for (const [cycle, { order }] of open) {
      const row = [...left].find((each) => isOf(each, cycle, order));
      if (row === undefined) continue;
      left.delete(row);
      open.delete(cycle);
      found.push(...unequal(`order ${row.cycleNumber} of cycle ${cycle} `, order, row));
    }
  }
  const isEqual = (row: Order, order: Rows<Order>) => unequal("", order, row).length === 0;
  match((row, _, { shopifyId }) => shopifyId != null && row.shopifyId === shopifyId);
  match((row, cycle, order) => row.cycleNumber === cycle && isEqual(row, order));
  match((row, _, order) => row.cycleNumber > 0 && isEqual(row, order));
  match((row, cycle) => row.cycleNumber === cycle);
  match((row) => row.cycleNumber > 0);
  for (const [cycle, { order, optional }] of open)
    if (!optional) found.push(`order ${cycle} is missing: ${JSON.stringify(order)}`);
  for (const row of left) found.push(`order ${row.cycleNumber} is not the platform's: ${JSON.stringify(row)}`);
  return found;
}

function customerDifferences({ remote }: ConnectedShop, mirror: Mirror, unchecked: Unchecked): string[] {
  const contracts = contractsOf(remote);
  return remote.ids("customer").flatMap((gid) => {
    const customer = remote.find("customer", gid);
    const row = mirror.customers.find(({ shopifyId }) => shopifyId === gid);
    if (customer === undefined || unchecked.has(gid)) return [];
    if (row === undefined) return [`${gid}: is not mirrored`];
    const { email, firstName, lastName, marketing } = customer;
    const own = contracts.filter((contract) => contract.customer === customer).map((each) => remote.gid(each));
    const isCounted = !own.some((contract) => unchecked.has(contract));
    const person = { email, firstName, lastName, marketingConsent: marketing === "SUBSCRIBED" };
    const count = isCounted ? { subscriptionCount: own.length } : {};
    return unequal(`${gid}: `, { ...person, ...count }, row);
  });
}

function unequal<T extends object>(what: string, expected: Partial<T>, row: T): string[] {
  return Object.entries(expected).flatMap(([field, value]) => {
    const given = row[field as keyof T];
    if (isDeepStrictEqual(given, value)) return [];
    return [`${what}${field} is ${JSON.stringify(given)}, not ${JSON.stringify(value)}`];
  });
}

/** The states that contracts, orders and people of the platform ever had. */
export class States {
  private readonly states = new Map<string, Set<string>>();

  /** Notes the current states. */
  note({ remote, test }: ConnectedShop): void {
    noteRates(remote);
    for (const contract of contractsOf(remote))
      for (const rate of ratesOf(remote, contract)) {
        this.add(stateOf(expectedSubscription(remote, contract, rate, test.clock.ms)));
        for (const { order } of expectedOrders(remote, contract, rate, test.clock.ms).values())
          if (order.shopifyId != null) this.add([order.shopifyId, `${order.totalCents} ${order.status}`]);
      }
    for (const gid of remote.ids("customer")) {
      const { firstName, lastName } = remote.find("customer", gid) ?? {};
      this.add([gid, `${firstName} ${lastName}`]);
    }
  }

  /**
   * Notes that all contracts were cancelled. While the app is away, the mirror keeps old lines of the contracts. So
   * each earlier state may occur with the status CANCELLED.
   */
  noteCancellations(): void {
    for (const known of this.states.values())
      for (const state of [...known]) known.add(state.replace(/^(ACTIVE|PAUSED|PAYMENT_FAILED)/, "CANCELLED"));
  }

  /** @returns rows with a state that the platform never had */
  async unknown(all: ConnectedShop): Promise<string[]> {
    const { customers, subscriptions, orders } = await mirrorOf(all);
    return [
      ...customers.flatMap(({ shopifyId, firstName, lastName }): [string, string][] =>
        firstName === null && lastName === null ? [] : [[shopifyId, `${firstName} ${lastName}`]],
      ),
      ...subscriptions.map(stateOf),
      ...orders.flatMap(({ shopifyId, totalCents, status }): [string, string][] =>
        shopifyId === null ? [] : [[shopifyId, `${totalCents} ${status}`]],
      ),
    ].flatMap(([gid, state]) =>
      this.states.get(gid)?.has(state) === true ? [] : [`${gid}: the platform never had the state ${state}`],
    );
  }

  private add([gid, state]: readonly [string, string]): void {
    const known = this.states.get(gid) ?? new Set();
    this.states.set(gid, known.add(state));
  }
}

function stateOf({ shopifyId = "", status, lines = [] }: Partial<Subscription>): [string, string] {
  return [shopifyId, `${status} ${lines.map(({ title, quantity }) => `${quantity} ${title}`).join(", ")}`];
}
