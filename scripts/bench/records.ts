import type { SubscriptionRecord } from "../../src/domain/records/record-schemas.ts";
import { parseRecord } from "../../src/domain/records/records.ts";
import { isoUtc } from "../../src/lib/time.ts";
import { randomFractions } from "../random.ts";

const DAY = 24 * 3_600_000;
const FIRST_DAY = Date.UTC(2021, 0, 1);
const FIVE_YEARS = 1_826 * DAY;
/** Ids of the platform have eleven to fourteen digits. */
const FIRST_CONTRACT = 21_000_000_000;
const FIRST_CUSTOMER = 7_100_000_000_000;
const NEW_CUSTOMER = 0.8;
const WITHOUT_PLAN = 0.3;

const STATUSES = [
  "ACTIVE",
  "ACTIVE",
  "ACTIVE",
  "ACTIVE",
  "ACTIVE",
  "ACTIVE",
  "CANCELLED",
  "CANCELLED",
  "PAUSED",
  "PAYMENT_FAILED",
] as const;
const INTERVALS = ["WEEK", "MONTH", "MONTH", "MONTH"] as const;
const TITLES = ["House Blend, 1 kg", "Decaf, 500 g", "Ethiopia, 250 g", "Cold Brew, 6 bottles"] as const;

/**
 * Yields the contracts of a shop over five years. Every run yields the same contracts. Each contract has one line.
 * There are about four customers for every five contracts.
 * @param order `random`: the start dates are in random order, as they may be in an export. `dated`: the oldest contract
 *   is first, and the dates are evenly spread
 */
export function* subscriptionRecords(count: number, order: "random" | "dated"): Generator<SubscriptionRecord> {
  const random = randomFractions(20_260_131);
  const below = (n: number) => Math.floor(random() * n);
  const pick = <T>(values: readonly T[]) => values[below(values.length)] as T;
  let customers = 0;
  for (let index = 0; index < count; index += 1) {
    const startedAt = FIRST_DAY + (order === "random" ? below(FIVE_YEARS) : Math.floor((index / count) * FIVE_YEARS));
    const status = pick(STATUSES);
    const product = 8_000_000_000_000 + below(1_000);
    const isNewCustomer = customers === 0 || random() < NEW_CUSTOMER;
    const customer = isNewCustomer ? customers : below(customers);
    if (isNewCustomer) customers += 1;
    const parsed = parseRecord({
      type: "subscription",
      shopifyId: `gid://shopify/SubscriptionContract/${FIRST_CONTRACT + index}`,
      customer: `gid://shopify/Customer/${FIRST_CUSTOMER + customer}`,
      status,
      interval: pick(INTERVALS),
      intervalCount: 1 + below(3),
      sellingPlanId: random() < WITHOUT_PLAN ? null : `gid://shopify/SellingPlan/${3_600_000_000 + below(20)}`,
      lines: [
        {
          variantId: `gid://shopify/ProductVariant/${44_000_000_000_000 + product}`,
          productId: `gid://shopify/Product/${product}`,
          title: pick(TITLES),
          quantity: 1 + below(3),
          unitPriceCents: 990 + 100 * below(50),
        },
      ],
      nextBillingDate: status === "CANCELLED" ? null : isoUtc(FIRST_DAY + FIVE_YEARS + below(30 * DAY)),
      startedAt: isoUtc(startedAt),
      cancelledAt: status === "CANCELLED" ? isoUtc(startedAt + below(FIRST_DAY + FIVE_YEARS - startedAt)) : null,
      cyclesCompleted: below(40),
    });
    if ("refused" in parsed)
      throw new Error(`the generator made a record that ${parsed.refused.field} ${parsed.refused.reason}`);
    yield parsed.record as SubscriptionRecord;
  }
}
