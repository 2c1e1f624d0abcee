import { addIntervals, cycleOf, nextBillingAfter } from "./cycles.ts";
import type { AttemptRow, ContractRow, CustomerRow, LineRow, OrderRow, Row } from "./rows.ts";

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
}

type Rows = (reserve: (count: number) => number, nextRevision: () => number) => Generator<Row>;

/** Monthly contracts, each with a customer, an origin order and paid renewals. */
export function seededRows(
  { contracts, linesEach = 2, renewals = 0, setsNextBillingDate = true }: Seeding,
  { now, currency, lastOrderNumber }: SeedShop,
): Rows {
  // All contracts share a few lists of lines, because lines never change.
  const lineLists = TITLES.map((_, first) =>
    Array.from({ length: linesEach }, (_, key) => seededLine(first + key, key)),
  );
  // All contracts begin within one month. The month is chosen so that exactly these renewals are billed by now.
  const firstStart = addIntervals(now, "MONTH", -renewals - 1) + DAY_MS;
  const span = addIntervals(now, "MONTH", -renewals) - firstStart;
  let number = lastOrderNumber;

  return function* rows(reserve, nextRevision) {
    for (let index = 0; index < contracts; index++) {
      const createdAt = firstStart + Math.floor(((index / contracts) * span) / 1000) * 1000;
      const firstName = NAMES[index % NAMES.length] ?? null;
      const customer: CustomerRow = {
        kind: "customer",
        n: reserve(1),
        email: `customer-${index}@example.com`,
        firstName,
        lastName: "Seeded",
        createdAt,
        updatedAt: createdAt,
        marketing: index % 3 === 0 ? "SUBSCRIBED" : "NOT_SUBSCRIBED",
        marketingAt: index % 3 === 0 ? createdAt : null,
        deleted: false,
      };
      yield customer;
      const contract: ContractRow = {
        kind: "contract",
        n: reserve(1),
        customer,
        status: "ACTIVE",
        revision: nextRevision(),
        createdAt,
        updatedAt: createdAt,
        nextBillingDate: null,
        setsNextBillingDate,
        currency,
        interval: "MONTH",
        intervalCount: 1,
        originOrder: null,
        lines: lineLists[index % lineLists.length] ?? [],
        attempts: [],
        skips: null,
        edits: null,
      };
      if (setsNextBillingDate) contract.nextBillingDate = nextBillingAfter(contract, renewals);
      yield contract;
      contract.originOrder = seededOrder(contract, createdAt, "web");
      yield contract.originOrder;
      for (let cycleIndex = 1; cycleIndex <= renewals; cycleIndex++) {
        const billedAt = cycleOf(contract, cycleIndex).endAt;
        const order = seededOrder(contract, billedAt, "subscription_contract");
        const attempt: AttemptRow = {
          kind: "attempt",
          n: reserve(1),
          contract,
          cycleIndex,
          createdAt: billedAt,
          completedAt: billedAt,
          state: "succeeded",
          code: null,
          order,
        };
        contract.attempts.push(attempt);
        contract.updatedAt = billedAt;
        yield order;
        yield attempt;
      }
    }

    function seededOrder(contract: ContractRow, time: number, source: string): OrderRow {
      number++;
      return {
        kind: "order",
        n: reserve(1 + linesEach),
        number,
        contract,
        lineContracts: null,
        customer: contract.customer,
        createdAt: time,
        processedAt: time,
        updatedAt: time,
        cancelledAt: null,
        financial: "PAID",
        test: false,
        source,
        currency,
        lines: contract.lines,
        discounts: NO_DISCOUNTS,
      };
    }
  };
}

const NO_DISCOUNTS: OrderRow["discounts"] = [];

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
