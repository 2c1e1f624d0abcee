import { addIntervals, cycleOf, nextBillingAfter } from "./cycles.ts";
import {
  attemptRow,
  type ContractRow,
  type CustomerRow,
  contractRow,
  customerRow,
  type LineRow,
  type OrderRow,
  orderRow,
  type Row,
} from "./rows.ts";

const DAY_MS = 86_400_000;
const NAMES = ["Ada", "Bruno", "Chiara", "Dov", "Elif", "Femi", "Greta", "Hana"];
const TITLES = ["House blend", "Decaf", "Single origin", "Filter papers", "Oat milk"];

export interface Seeding {
  contracts: number;
  linesEach?: number;
  /** Paid renewals of each contract, not counting its origin order. */
  renewals?: number;
  /** Whether the billing app sets the next billing dates of these contracts. */
  setsNextBillingDate?: boolean;
}

interface SeedShop {
  now: number;
  currency: string;
  lastOrderNumber: number;
  reserve: (count: number) => number;
  nextRevision: () => number;
}

/** Monthly contracts, each with a customer, an origin order and paid renewals. */
export function* seededRows(
  { contracts, linesEach = 2, renewals = 0, setsNextBillingDate = true }: Seeding,
  { now, currency, lastOrderNumber, reserve, nextRevision }: SeedShop,
): Generator<Row> {
  // All contracts share a few lists of lines, because lines never change.
  const lineLists = TITLES.map((_, first) =>
    Array.from({ length: linesEach }, (_, key) => seededLine(first + key, key)),
  );
  // All contracts begin within one month. By now, each of them was billed for `renewals` renewals.
  const firstStart = addIntervals(now, "MONTH", -renewals - 1) + DAY_MS;
  const span = addIntervals(now, "MONTH", -renewals) - firstStart;
  let number = lastOrderNumber;

  function orderOf(contract: ContractRow, createdAt: number, source: string): OrderRow {
    number++;
    const { customer, lines } = contract;
    return orderRow({ n: reserve(1 + linesEach), number, contract, customer, createdAt, source, currency, lines });
  }

  for (let index = 0; index < contracts; index++) {
    const createdAt = firstStart + Math.floor(((index / contracts) * span) / 1000) * 1000;
    const customer = seededCustomer(reserve(1), index, createdAt);
    yield customer;
    const lines = lineLists[index % lineLists.length] ?? [];
    const ids = { n: reserve(1), revision: nextRevision() };
    const contract = contractRow({ ...ids, customer, createdAt, currency, lines, setsNextBillingDate });
    if (setsNextBillingDate) contract.nextBillingDate = nextBillingAfter(contract, renewals);
    yield contract;
    contract.originOrder = orderOf(contract, createdAt, "web");
    yield contract.originOrder;
    for (let cycleIndex = 1; cycleIndex <= renewals; cycleIndex++) {
      const billedAt = cycleOf(contract, cycleIndex).endAt;
      const order = orderOf(contract, billedAt, "subscription_contract");
      const times = { createdAt: billedAt, completedAt: billedAt };
      const attempt = attemptRow({ n: reserve(1), contract, cycleIndex, ...times, state: "succeeded", order });
      contract.attempts.push(attempt);
      contract.updatedAt = billedAt;
      yield order;
      yield attempt;
    }
  }
}

function seededCustomer(n: number, index: number, createdAt: number): CustomerRow {
  const firstName = NAMES[index % NAMES.length] ?? null;
  const consent = index % 3 === 0 ? ({ marketing: "SUBSCRIBED", marketingAt: createdAt } as const) : {};
  return customerRow({
    n,
    email: `customer-${index}@example.com`,
    firstName,
    lastName: "Seeded",
    createdAt,
    ...consent,
  });
}

function seededLine(which: number, key: number): LineRow {
  const product = which % TITLES.length;
  const price = 1250 + 100 * product;
  return {
    key,
    title: TITLES[product] ?? "",
    variantTitle: null,
    quantity: 1,
    price,
    discounted: price,
    variant: `gid://shopify/ProductVariant/${44_000_000_000_001 + product}`,
    product: `gid://shopify/Product/${8_000_000_000_001 + product}`,
    sellingPlan: "gid://shopify/SellingPlan/3000000001",
  };
}
