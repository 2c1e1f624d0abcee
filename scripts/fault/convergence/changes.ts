import type { ContractInput } from "../../../test/support/platform/contract-changes.ts";
import { cycleOf } from "../../../test/support/platform/cycles.ts";
import type { LineInput } from "../../../test/support/platform/lines.ts";
import type { ContractRow, OrderRow } from "../../../test/support/platform/rows.ts";
import type { PlatformShop } from "../../../test/support/platform/shop.ts";
import type { Random } from "../fuzzing/random.ts";
import { contractsOf, hasCycle, nextCycle } from "./expected.ts";

/** A shop of the stand-in, and facts about its earlier changes that later changes need. */
export interface ChangingShop {
  remote: PlatformShop;
  random: Random;
  now: () => number;
  /** Contracts whose cycle 1 the app never bills, as if the app began to bill them after the due time of that cycle. */
  late: Set<string>;
  /** How each order is changed, always in the same way. The stand-in cannot replace the lines of an edited order. */
  changedOrders: Map<string, "lines" | "quantities">;
  /** How often each contract was cancelled. */
  cancellations: Map<string, number>;
  /** Objects with a broken field. They get no contracts, and are not merged. */
  broken: ReadonlySet<string>;
}

type Change = (shop: ChangingShop, contract: ContractRow) => unknown;

const TITLES = ["House blend", "Decaf", "Filter papers", "Oat milk"];
const RATES = { EUR: 1.0843, JPY: 0.006_712, KWD: 3.2551, USDC: 0.9998 };
const DAY_MS = 86_400_000;
const MOST_CONTRACTS = 60;
const MOST_CYCLES_AHEAD = 2;

function line({ random }: ChangingShop, currency: string, number: number): LineInput {
  const digits = { JPY: 0, KWD: 3 }[currency] ?? 2;
  const price = (100 + random.below(9_900)) / 100;
  const quantity = 1 + random.below(4);
  const variant = random.chance(0.9) ? `gid://shopify/ProductVariant/${11 + number}` : null;
  const isDiscounted = random.chance(0.2);
  return {
    title: `${random.pick(TITLES)} ${number}`,
    price: price.toFixed(digits),
    quantity,
    variant,
    product: variant === null ? null : `gid://shopify/Product/${21 + number}`,
    sellingPlan: random.chance(0.7) ? "gid://shopify/SellingPlan/3" : null,
    ...(isDiscounted && { discounted: (Number(price.toFixed(digits)) * quantity * 0.9).toFixed(digits) }),
  };
}

function lines(shop: ChangingShop, currency: string): LineInput[] {
  return Array.from({ length: 1 + shop.random.below(3) }, (_, number) => line(shop, currency, number));
}

function contractInput(shop: ChangingShop, customer: string): ContractInput {
  const { random, remote } = shop;
  const currency = random.chance(0.6) ? remote.currency : random.pick(Object.keys(RATES));
  const interval = random.pick(["DAY", "WEEK", "MONTH", "YEAR"] as const);
  return {
    customer,
    currency,
    lines: lines(shop, currency),
    interval,
    intervalCount: interval === "YEAR" ? 1 : 1 + random.below(3),
    maxCycles: random.chance(0.15) ? 1 + random.below(4) : null,
    setsNextBillingDate: random.chance(0.5),
  };
}

function discounts({ random }: ChangingShop) {
  const titles = ["Loyalty credit", "Summer"].filter(() => random.chance(0.3));
  return titles.map((title) => ({ title, amount: String(1 + random.below(3)) }));
}

function newCustomer({ remote, random }: ChangingShop): string {
  const number = random.below(1_000_000);
  return remote.createCustomer({ email: `c${number}@example.com`, firstName: "Ada", lastName: `Number ${number}` });
}

/** Makes contracts, some with an order of their own, some with one order for several contracts. */
export function signUp(shop: ChangingShop): void {
  const { remote, random, late, broken } = shop;
  if (remote.ids("contract").length >= MOST_CONTRACTS) return;
  const customer = random.chance(0.8)
    ? newCustomer(shop)
    : random.pick(remote.ids("customer").filter((id) => !broken.has(id)));
  if (random.chance(0.2)) {
    const { currency, ...first } = contractInput(shop, customer);
    const inputs = [first, contractInput(shop, customer)].map((input) => ({ ...input, currency: remote.currency }));
    remote.createContracts(
      inputs.map((input) => ({ ...input, lines: lines(shop, remote.currency) })),
      discounts(shop),
    );
    return;
  }
  const originOrder = random.chance(0.8);
  const gid = remote.createContract({ ...contractInput(shop, customer), originOrder, discounts: discounts(shop) });
  if (random.chance(0.15)) late.add(gid);
}

export function setRates({ remote, random }: ChangingShop): void {
  const moved = Object.entries(RATES).map(([currency, rate]) => [currency, rate * (0.9 + random.below(200) / 1_000)]);
  remote.setRates(Object.fromEntries(moved));
}

/** Returns the cycle that the app bills next: the first unskipped cycle after the last charge. */
function cycleToBill({ late, remote }: ChangingShop, contract: ContractRow): number {
  const charged = contract.attempts.flatMap(({ state, cycleIndex }) => (state === "succeeded" ? [cycleIndex] : []));
  let cycle = Math.max(late.has(remote.gid(contract)) ? 1 : 0, ...charged) + 1;
  while (contract.skips?.get(cycle) === true) cycle += 1;
  return cycle;
}

/** Thrown for a change that nobody would make. */
export class Unlikely extends Error {}

function hasEnded({ status }: ContractRow): boolean {
  return status === "CANCELLED" || status === "EXPIRED";
}

/** Bills a contract. @throws Unlikely if it has ended, or if the cycle is far ahead or after the last cycle */
function attempt(shop: ChangingShop, contract: ContractRow): string {
  const { remote, now } = shop;
  const cycle = cycleToBill(shop, contract);
  const isFar = cycleOf(contract, Math.max(1, cycle - MOST_CYCLES_AHEAD)).startAt > now();
  if (isFar || hasEnded(contract) || !hasCycle(contract, cycle)) throw new Unlikely();
  const open = contract.attempts.find(
    ({ state, cycleIndex }) => cycleIndex === cycle && (state === "pending" || state === "challenged"),
  );
  return open === undefined ? remote.startAttempt(remote.gid(contract), cycle) : remote.gid(open);
}

function ordersOf(remote: PlatformShop): OrderRow[] {
  return remote.ids("order").flatMap((id) => remote.find("order", id) ?? []);
}

/** Changes an order in one of two ways. If it was changed in the other way before, it stays unchanged. */
function changeOrder(
  shop: ChangingShop,
  how: "lines" | "quantities",
  change: (order: OrderRow, gid: string) => unknown,
) {
  const { remote, random, changedOrders } = shop;
  const orders = ordersOf(remote).filter((order) => (changedOrders.get(remote.gid(order)) ?? how) === how);
  if (orders.length === 0) return;
  const order = random.pick(orders);
  changedOrders.set(remote.gid(order), how);
  change(order, remote.gid(order));
}

function cancel({ remote, cancellations }: ChangingShop, contract: ContractRow): void {
  const gid = remote.gid(contract);
  if (contract.status === "EXPIRED") return;
  if (contract.status !== "CANCELLED") cancellations.set(gid, (cancellations.get(gid) ?? 0) + 1);
  remote.cancel(gid);
}

function skip(shop: ChangingShop, contract: ContractRow): void {
  const { remote, random, late, now } = shop;
  if (late.has(remote.gid(contract)) || hasEnded(contract)) return;
  const next = nextCycle(contract, now());
  if (next === undefined) return;
  const cycle = Math.max(next.index, cycleToBill(shop, contract)) + random.below(2);
  if (!hasCycle(contract, cycle)) return;
  if (contract.attempts.every(({ cycleIndex }) => cycleIndex < cycle)) remote.skipCycle(remote.gid(contract), cycle);
}

function unskip(shop: ChangingShop, contract: ContractRow): void {
  if (hasEnded(contract)) return;
  const charged = contract.attempts.map(({ cycleIndex }) => cycleIndex);
  const skipped = [...(contract.skips ?? [])].filter(([cycle, is]) => is && charged.every((each) => each < cycle));
  if (skipped.length > 0) shop.remote.unskipCycle(shop.remote.gid(contract), shop.random.pick(skipped)[0]);
}

function dateAhead({ now, random }: ChangingShop): string {
  return new Date(now() + (1 + random.below(60)) * DAY_MS).toISOString();
}

/** Merges two customers without contracts. */
function merge({ remote, random, broken }: ChangingShop): void {
  const owners = new Set(contractsOf(remote).map(({ customer }) => remote.gid(customer)));
  const free = remote.ids("customer").filter((id) => !owners.has(id) && !broken.has(id));
  if (free.length < 3) return;
  const [kept, gone] = [random.pick(free), random.pick(free)];
  if (kept === gone) return;
  remote.mergeCustomers(kept, gone);
}

/** Each change, with its weight. */
const CHANGES: [weight: number, change: Change][] = [
  [3, signUp],
  [1, (shop) => newCustomer(shop)],
  [1, merge],
  [1, setRates],
  [2, ({ remote, random }) => rename(remote, random)],
  [1, ({ remote, random }) => consent(remote, random)],
  [2, (shop, row) => shop.remote.updateContract(shop.remote.gid(row), { lines: lines(shop, row.currency) })],
  [1, (shop, row) => shop.remote.setNextBillingDate(shop.remote.gid(row), dateAhead(shop))],
  [2, ({ remote }, row) => row.status !== "EXPIRED" && remote.pause(remote.gid(row))],
  [4, ({ remote }, row) => row.status !== "EXPIRED" && remote.activate(remote.gid(row))],
  [1, ({ remote }, row) => row.status !== "EXPIRED" && remote.fail(remote.gid(row))],
  [1, ({ remote }, row) => remote.expire(remote.gid(row))],
  [2, cancel],
  [8, (shop, row) => shop.remote.succeedAttempt(attempt(shop, row), { discounts: discounts(shop) })],
  [4, (shop, row) => shop.remote.failAttempt(attempt(shop, row))],
  [1, (shop, row) => shop.remote.failAttempt(attempt(shop, row), "INSUFFICIENT_INVENTORY")],
  [1, attempt],
  [1, (shop, row) => shop.remote.challenge(attempt(shop, row))],
  [2, billTogether],
  [2, skip],
  [1, unskip],
  [1, editCycle],
  [1, ({ remote }) => remote.placeOrder()],
  [1, (shop) => changeOrder(shop, "lines", (row, gid) => replaceLines(shop, row, gid))],
  [2, (shop) => changeOrder(shop, "quantities", (row, gid) => shop.remote.editOrder(gid, leftOf(shop, row)))],
  [1, (shop) => changeOrder(shop, "quantities", (row, gid) => shop.remote.refundOrder(gid, leftOf(shop, row)))],
  [
    1,
    (shop) => changeOrder(shop, "quantities", (row, gid) => row.financial === "PAID" && shop.remote.cancelOrder(gid)),
  ],
];
const ALL_CHANGES = CHANGES.flatMap(([weight, change]) => Array<Change>(weight).fill(change));

function rename(remote: PlatformShop, random: Random): void {
  remote.updateCustomer(random.pick(remote.ids("customer")), { firstName: `Name ${random.below(1_000)}` });
}

function consent(remote: PlatformShop, random: Random): void {
  remote.setConsent(random.pick(remote.ids("customer")), random.pick(["subscribed", "unsubscribed", "pending"]));
}

function leftOf({ random }: ChangingShop, { lines: ordered }: OrderRow): number[] {
  return ordered.map(({ quantity }) => random.below(quantity + 1));
}

function replaceLines(shop: ChangingShop, { lines: ordered, currency }: OrderRow, gid: string): void {
  shop.remote.updateOrder(gid, { lines: ordered.map((_, number) => line(shop, currency, number)) });
}

function editCycle(shop: ChangingShop, contract: ContractRow): void {
  const { remote, random } = shop;
  const gid = remote.gid(contract);
  const cycle = cycleToBill(shop, contract);
  if (hasEnded(contract) || !hasCycle(contract, cycle)) return;
  if (contract.edits?.has(cycle) === true && random.chance(0.3)) remote.deleteCycleEdit(gid, cycle);
  else if (random.chance(0.5)) remote.editCycle(gid, cycle, lines(shop, contract.currency));
  else remote.editCycle(gid, cycle, undefined, dateAhead(shop));
}

/** Bills with one order all contracts that have the customer and the currency of this one. */
function billTogether(shop: ChangingShop, contract: ContractRow): void {
  const { remote } = shop;
  const { customer, currency } = contract;
  const together = contractsOf(remote).filter((each) => each.customer === customer && each.currency === currency);
  if (together.length < 2) return;
  remote.succeedAttempts(together.map((each) => attempt(shop, each)));
}

/** Makes one random change, if it is possible now. @throws an `Unlikely` if nobody would make the change */
export function changeOnce(shop: ChangingShop): void {
  const contract = shop.random.pick(contractsOf(shop.remote));
  shop.random.pick(ALL_CHANGES)(shop, contract);
}
