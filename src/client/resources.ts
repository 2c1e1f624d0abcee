// `bun scripts/build.ts --client-types` writes this file from the schemas in src/domain. Do not edit it.

/** A line item of a subscription or an order. */
export interface LineItem {
  /** Gid of the product variant. */
  variantId: string;
  /** Gid of the product. */
  productId: string;
  title: string;
  /** 1 or more. */
  quantity: number;
  /** Price of one piece. */
  unitPriceCents: number;
}

/** A subscription contract. */
export interface Subscription {
  /** Internal id of the contract. Never changes. */
  id: string;
  /** Gid of the contract. */
  shopifyId: string;
  /** `id` of its customer. */
  customerId: string;
  /** `ACTIVE`, `PAUSED`, `CANCELLED`, `PAYMENT_FAILED` or `EXPIRED`. */
  status: "ACTIVE" | "PAUSED" | "CANCELLED" | "PAYMENT_FAILED" | "EXPIRED";
  /** `DAY`, `WEEK` or `MONTH`. A yearly contract is 12 months. */
  interval: "DAY" | "WEEK" | "MONTH";
  /** Intervals from one billing to the next. */
  intervalCount: number;
  /** Gid of the selling plan. */
  sellingPlanId: string | null;
  /** Line items, at most 250. */
  lines: LineItem[];
  /** Always null for `CANCELLED` and `EXPIRED`. */
  nextBillingDate: string | null;
  /**
   * Renewals billed so far, as the source counts them. If the source does not count them, the number of `PAID` and
   * `RECOVERED` renewals in the mirror.
   */
  cyclesCompleted: number;
  /** Sort field. Never changes. */
  startedAt: string;
  /**
   * Date of the cancellation, from the source. If the source gives none, the time when the mirror saw the cancellation.
   * Null if the contract was cancelled before the mirror first saw it.
   */
  cancelledAt: string | null;
}

/** A customer who has, or had, a subscription. */
export interface Customer {
  /** Internal id. Never changes. */
  id: string;
  /** Gid of the customer. */
  shopifyId: string;
  /** Also null if the app may not read it, and after a redaction. */
  email: string | null;
  /** Null in the same cases as `email`. */
  firstName: string | null;
  /** Null in the same cases as `email`. */
  lastName: string | null;
  /** Whether marketing e-mail is allowed. */
  marketingConsent: boolean;
  /** Balance of loyalty store credit. */
  creditsCents: number;
  /** 0 is the base tier. */
  loyaltyTier: number;
  /** Contracts of the customer, of any status. */
  subscriptionCount: number;
  /** When the mirror first saw the customer. Sort field. Never changes. */
  createdAt: string;
}

/** A subscriber's first checkout, or one renewal of a contract. */
export interface Order {
  /** Internal id. Never changes. */
  id: string;
  /** Gid of the platform's order. Null until a charge succeeds: a declined attempt has no platform order. */
  shopifyId: string | null;
  /** `id` of its subscription. */
  contractId: string;
  /** `id` of its customer. */
  customerId: string;
  /** `checkout` or `recurring`. */
  source: "checkout" | "recurring";
  /** Which renewal of the contract: 1 is the first. 0 for a checkout. */
  cycleNumber: number;
  /**
   * `PENDING`, `PAID`, `RECOVERED` (paid after a decline), `FAILED`, `UNCOLLECTIBLE` (declined, and retries are
   * finished or the contract has ended; or a checkout whose payment was cancelled) or `SKIPPED`.
   */
  status: "PENDING" | "PAID" | "RECOVERED" | "FAILED" | "UNCOLLECTIBLE" | "SKIPPED";
  /** Line items, at most 250. */
  lines: LineItem[];
  /** Sum of the lines, before discounts and credits are subtracted. */
  subtotalCents: number;
  /** Discounts. */
  discountCents: number;
  /** Store credit. */
  creditsCents: number;
  /** Always `subtotalCents` minus `discountCents` minus `creditsCents`. */
  totalCents: number;
  /** First billing attempt. Sort field. Never changes. */
  billedAt: string;
}

/** A subscription as `include: ["customFields"]` gives it. */
export interface SubscriptionWithFields extends Subscription {
  /**
   * Values of the shop's own fields by their keys, in the order of the fields. A field without a value is absent. Only
   * with `include=customFields`.
   */
  customFields: Record<string, string | number | boolean>;
}
