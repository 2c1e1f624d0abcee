/**
 * The rows of a shop. They are small, because a bench keeps a million of them in memory: ids are offsets, and lines are
 * shared.
 */

import type { Currencies } from "./money.ts";

export type ContractStatus = "ACTIVE" | "PAUSED" | "CANCELLED" | "EXPIRED" | "FAILED";
export type Interval = "DAY" | "WEEK" | "MONTH" | "YEAR";
export type FinancialStatus =
  | "AUTHORIZED"
  | "EXPIRED"
  | "PAID"
  | "PARTIALLY_PAID"
  | "PARTIALLY_REFUNDED"
  | "PENDING"
  | "REFUNDED"
  | "VOIDED";
export type MarketingState = "INVALID" | "NOT_SUBSCRIBED" | "PENDING" | "SUBSCRIBED" | "UNSUBSCRIBED";
export type DiscountKind = "manual" | "automatic" | "code" | "script";

export interface CustomerRow {
  readonly kind: "customer";
  /** The id as an offset from the first id of the shop. */
  readonly n: number;
  email: string | null;
  firstName: string | null;
  lastName: string | null;
  readonly createdAt: number;
  updatedAt: number;
  marketing: MarketingState;
  marketingAt: number | null;
  deleted: boolean;
}

/** A line. It never changes, because contracts and orders share it. */
export interface LineRow {
  /** The number of the line in its contract. It stays the same when other lines come and go. */
  readonly key: number;
  readonly title: string;
  readonly variantTitle: string | null;
  readonly quantity: number;
  /** In minor units, like all money of the model. It can have a fraction, because the platform can send one. */
  readonly price: number;
  /** The price of the whole line after its discounts. */
  readonly discounted: number;
  /** Global ids. */
  readonly variant: string | null;
  readonly product: string | null;
  readonly sellingPlan: string | null;
}

export interface DiscountRow {
  readonly kind: DiscountKind;
  readonly title: string;
  /** The amount of the discount on each line of the order. */
  readonly perLine: readonly number[];
}

export interface OrderRow extends Currencies {
  readonly kind: "order";
  /** The number in the order's id. The ids of the order's line items have the next numbers. */
  readonly n: number;
  readonly number: number;
  readonly contract: ContractRow | null;
  /** The contract of each line, if the order has lines of several contracts. */
  readonly lineContracts: readonly ContractRow[] | null;
  readonly customer: CustomerRow | null;
  readonly createdAt: number;
  processedAt: number;
  updatedAt: number;
  cancelledAt: number | null;
  financial: FinancialStatus;
  test: boolean;
  readonly source: string;
  lines: readonly LineRow[];
  discounts: readonly DiscountRow[];
  /** Whether the merchant edited the order. */
  edited: boolean;
  /** What is left of each line's quantity after removals and refunds; null if nothing was removed or refunded. */
  currentQuantities: readonly number[] | null;
}

export interface AttemptRow {
  readonly kind: "attempt";
  readonly n: number;
  readonly contract: ContractRow;
  readonly cycleIndex: number;
  readonly createdAt: number;
  completedAt: number | null;
  state: "pending" | "challenged" | "failed" | "succeeded";
  code: string | null;
  order: OrderRow | null;
}

export interface ContractRow {
  readonly kind: "contract";
  readonly n: number;
  readonly customer: CustomerRow;
  status: ContractStatus;
  /** The revision as an offset from the first one of the shop. */
  revision: number;
  readonly createdAt: number;
  updatedAt: number;
  nextBillingDate: number | null;
  readonly setsNextBillingDate: boolean;
  readonly currency: string;
  readonly interval: Interval;
  readonly intervalCount: number;
  /** The number of the last cycle; null for a contract without an end. */
  readonly maxCycles: number | null;
  originOrder: OrderRow | null;
  lines: readonly LineRow[];
  attempts: AttemptRow[];
  /** The cycles that were ever skipped, and whether they still are. */
  skips: Map<number, boolean> | null;
  edits: Map<number, CycleEdit> | null;
}

/** Edits of one cycle. null means that the contract's value applies. */
interface CycleEdit {
  readonly lines: readonly LineRow[] | null;
  readonly expectedAt: number | null;
}

export type Row = CustomerRow | OrderRow | AttemptRow | ContractRow;

export interface RowOf {
  customer: CustomerRow;
  order: OrderRow;
  attempt: AttemptRow;
  contract: ContractRow;
}

export type Kind = keyof RowOf;

/** The name of the type in gids and in the schema. */
export const TYPE_NAME: Record<Kind, string> = {
  customer: "Customer",
  order: "Order",
  attempt: "SubscriptionBillingAttempt",
  contract: "SubscriptionContract",
};

const NO_DISCOUNTS: readonly DiscountRow[] = [];

export function customerRow(fields: Pick<CustomerRow, "n" | "createdAt"> & Partial<CustomerRow>): CustomerRow {
  const nobody = { email: null, firstName: null, lastName: null };
  const unasked = { marketing: "NOT_SUBSCRIBED", marketingAt: null, deleted: false } as const;
  return { kind: "customer", ...nobody, ...unasked, updatedAt: fields.createdAt, ...fields };
}

/** A paid order. */
export function orderRow(
  fields: Pick<OrderRow, "n" | "number" | "createdAt" | "source" | "currency" | "lines"> & Partial<OrderRow>,
): OrderRow {
  return {
    kind: "order",
    contract: null,
    lineContracts: null,
    customer: null,
    processedAt: fields.createdAt,
    updatedAt: fields.createdAt,
    cancelledAt: null,
    financial: "PAID",
    test: false,
    exchange: null,
    edited: false,
    currentQuantities: null,
    discounts: NO_DISCOUNTS,
    ...fields,
  };
}

/** An attempt that has not ended. */
export function attemptRow(
  fields: Pick<AttemptRow, "n" | "contract" | "cycleIndex" | "createdAt"> & Partial<AttemptRow>,
): AttemptRow {
  return { kind: "attempt", completedAt: null, state: "pending", code: null, order: null, ...fields };
}

/** An active monthly contract, whose billing app sets the next billing date. */
export function contractRow(
  fields: Pick<ContractRow, "n" | "customer" | "revision" | "createdAt" | "currency" | "lines"> & Partial<ContractRow>,
): ContractRow {
  return {
    kind: "contract",
    status: "ACTIVE",
    updatedAt: fields.createdAt,
    nextBillingDate: null,
    setsNextBillingDate: true,
    interval: "MONTH",
    intervalCount: 1,
    maxCycles: null,
    originOrder: null,
    attempts: [],
    skips: null,
    edits: null,
    ...fields,
  };
}

/** A copy of a row. Later changes of the row do not change the copy. */
export function copyOf(row: Row): Row {
  if (row.kind !== "contract") return { ...row };
  const { attempts, skips, edits } = row;
  return { ...row, attempts: [...attempts], skips: skips && new Map(skips), edits: edits && new Map(edits) };
}

export function isDeleted(row: Row): boolean {
  return row.kind === "customer" && row.deleted;
}

export function isKind<K extends Kind>(row: Row, kind: K): row is Extract<Row, RowOf[K]> & RowOf[K] {
  return row.kind === kind;
}
