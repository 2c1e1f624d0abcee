import { listPage, type PageArguments } from "./connection.ts";
import type { Fields } from "./context.ts";
import type { Cycle } from "./cycles.ts";
import { moneyV2 } from "./money.ts";
import type { AttemptRow, ContractRow, LineRow } from "./rows.ts";
import { utc } from "./timestamps.ts";

interface ContractLine {
  contract: ContractRow;
  line: LineRow;
}

const LAST_ERROR: Record<string, string> = {
  SubscriptionBillingAttemptPaymentError: "PAYMENT_ERROR",
  SubscriptionBillingAttemptInventoryError: "INVENTORY_ERROR",
};

interface EditedContract {
  cycle: Cycle;
  lines: readonly LineRow[];
}

function linesPage(contract: ContractRow, lines: readonly LineRow[], args: PageArguments) {
  return listPage(
    lines.map((line): ContractLine => ({ contract, line })),
    args,
    ({ line }) => line.key,
  );
}

const contract: Fields<ContractRow> = {
  id: (row, _, { shop }) => shop.gid(row),
  revisionId: (row, _, { shop }) => shop.revisionOf(row),
  createdAt: ({ createdAt }) => utc(createdAt),
  updatedAt: ({ updatedAt }) => utc(updatedAt),
  nextBillingDate: ({ nextBillingDate }) => utc(nextBillingDate),
  currencyCode: ({ currency }) => currency,
  customer: (row) => (row.customer.deleted ? null : row.customer),
  billingPolicy: ({ interval, intervalCount, maxCycles }) => ({
    interval,
    intervalCount,
    minCycles: null,
    maxCycles,
    anchors: [],
  }),
  deliveryPolicy: ({ interval, intervalCount }) => ({ interval, intervalCount, anchors: [] }),
  lastPaymentStatus: ({ attempts }) => {
    const state = attempts.findLast(({ completedAt }) => completedAt !== null)?.state;
    return state === undefined ? null : state.toUpperCase();
  },
  lastBillingAttemptErrorType: ({ attempts }, _, { errorType }) => {
    const { state, code } = attempts.findLast(({ completedAt }) => completedAt !== null) ?? {};
    if (state !== "failed") return null;
    return LAST_ERROR[errorType(code ?? "")] ?? "OTHER";
  },
  note: () => null,
  lines: (row, args) => linesPage(row, row.lines, args),
  linesCount: ({ lines }) => ({ count: lines.length, precision: "EXACT" }),
  billingAttempts: ({ attempts }, args) => listPage(attempts, args, ({ n }) => n),
  orders: ({ originOrder, attempts }, args) =>
    listPage(
      [originOrder, ...attempts.map(({ order }) => order)].filter((order) => order !== null),
      args,
      ({ n }) => n,
    ),
};

const contractLine: Fields<ContractLine> = {
  // The platform has UUIDs here.
  id: ({ contract: { n }, line: { key } }) =>
    `gid://shopify/SubscriptionLine/00000000-0000-4000-8${hex(key, 3)}-${hex(n, 12)}`,
  title: ({ line }) => line.title,
  variantTitle: ({ line }) => line.variantTitle,
  quantity: ({ line }) => line.quantity,
  productId: ({ line }) => line.product,
  variantId: ({ line }) => line.variant,
  sellingPlanId: ({ line }) => line.sellingPlan,
  sellingPlanName: ({ line }) => (line.sellingPlan === null ? null : "Subscribe and save"),
  currentPrice: ({ contract: { currency }, line }) => moneyV2(line.price, currency),
  lineDiscountedPrice: ({ contract: { currency }, line }) => moneyV2(line.discounted, currency),
};

function hex(value: number, places: number): string {
  return value.toString(16).padStart(places, "0");
}

const cycle: Fields<Cycle> = {
  cycleIndex: ({ index }) => index,
  cycleStartAt: ({ startAt }) => utc(startAt),
  cycleEndAt: ({ endAt }) => utc(endAt),
  billingAttemptExpectedDate: ({ expectedAt }) => utc(expectedAt),
  status: ({ billed }) => (billed ? "BILLED" : "UNBILLED"),
  sourceContract: (row) => row.contract,
  editedContract: (row) => (row.editedLines === null ? null : { cycle: row, lines: row.editedLines }),
  billingAttempts: ({ attempts }, args) => listPage(attempts, args, ({ n }) => n),
};

const editedContract: Fields<EditedContract> = {
  createdAt: ({ cycle: { contract } }) => utc(contract.createdAt),
  updatedAt: ({ cycle: { contract } }) => utc(contract.updatedAt),
  currencyCode: ({ cycle: { contract } }) => contract.currency,
  customer: ({ cycle: { contract } }) => (contract.customer.deleted ? null : contract.customer),
  lines: ({ cycle: { contract }, lines }, args) => linesPage(contract, lines, args),
  linesCount: ({ lines }) => ({ count: lines.length, precision: "EXACT" }),
};

const inventoryError: Fields<unknown> = {
  insufficientStockProductVariants: (_, args) => listPage([], args, () => 0),
};

const attempt: Fields<AttemptRow> = {
  id: (row, _, { shop }) => shop.gid(row),
  idempotencyKey: (row, _, { shop }) => shop.keyOf(row),
  originTime: ({ createdAt }) => utc(createdAt),
  createdAt: ({ createdAt }) => utc(createdAt),
  completedAt: ({ completedAt }) => utc(completedAt),
  ready: ({ completedAt }) => completedAt !== null,
  errorCode: ({ code }) => code,
  errorMessage: ({ code }) => (code === null ? null : `The attempt ended with ${code}.`),
  subscriptionContract: (row) => row.contract,
  state: ({ state, order, code }, _, { errorType }) => {
    if (state === "pending") return { __typename: "SubscriptionBillingAttemptPendingState", processing: true };
    if (state === "succeeded") return { __typename: "SubscriptionBillingAttemptSuccessState", order };
    if (state === "failed") {
      const error = { __typename: errorType(code ?? ""), code, message: `The attempt ended with ${code}.` };
      return { __typename: "SubscriptionBillingAttemptFailedState", error };
    }
    const action = {
      __typename: "SubscriptionBillingAttemptPaymentChallenge",
      nextActionUrl: "https://bank.example/challenge",
    };
    return { __typename: "SubscriptionBillingAttemptActionRequiredState", action };
  },
};

export const SUBSCRIPTION_FIELDS: Record<string, Fields<never>> = {
  SubscriptionContract: contract,
  SubscriptionLine: contractLine,
  SubscriptionBillingCycle: cycle,
  SubscriptionBillingCycleEditedContract: editedContract,
  SubscriptionBillingAttempt: attempt,
  SubscriptionBillingAttemptInventoryError: inventoryError,
};
