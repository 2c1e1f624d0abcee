import { listPage } from "./connection.ts";
import type { Fields } from "./context.ts";
import { moneyBag, moneyV2 } from "./money.ts";
import type { DiscountKind, DiscountRow, OrderRow } from "./rows.ts";
import { utc } from "./timestamps.ts";
import { type OrderLine, orderTotals } from "./totals.ts";

const APPLICATION: Record<DiscountKind, string> = {
  manual: "ManualDiscountApplication",
  automatic: "AutomaticDiscountApplication",
  code: "DiscountCodeApplication",
  script: "ScriptDiscountApplication",
};

function application({ kind, title, perLine }: DiscountRow, index: number, currency: string) {
  const value = { __typename: "MoneyV2", ...moneyV2(sum(perLine), currency) };
  const target = { allocationMethod: "ACROSS", targetSelection: "ALL", targetType: "LINE_ITEM" };
  return { __typename: APPLICATION[kind], index, title, code: title, description: null, value, ...target };
}

function sum(parts: readonly number[]): number {
  return parts.reduce((total, part) => total + part, 0);
}

const totals = (pick: (of: ReturnType<typeof orderTotals>) => number) => (order: OrderRow) =>
  moneyBag(pick(orderTotals(order)), order);

const order: Fields<OrderRow> = {
  id: (row, _, { shop }) => shop.gid(row),
  name: ({ number }) => `#${number}`,
  sourceName: ({ source }) => source,
  createdAt: ({ createdAt }) => utc(createdAt),
  processedAt: ({ processedAt }) => utc(processedAt),
  updatedAt: ({ updatedAt }) => utc(updatedAt),
  cancelledAt: ({ cancelledAt }) => utc(cancelledAt),
  displayFinancialStatus: ({ financial }) => financial,
  fullyPaid: ({ financial }) => financial === "PAID",
  currencyCode: ({ currency }) => currency,
  customer: ({ customer }) => (customer?.deleted === false ? customer : null),
  subtotalPriceSet: totals(({ subtotal }) => subtotal),
  totalDiscountsSet: totals(({ discount }) => discount),
  totalPriceSet: totals(({ subtotal }) => subtotal),
  originalTotalPriceSet: totals(({ subtotal }) => subtotal),
  currentSubtotalPriceSet: totals(({ subtotal }) => subtotal),
  currentTotalDiscountsSet: totals(({ discount }) => discount),
  currentTotalPriceSet: totals(({ subtotal }) => subtotal),
  totalTaxSet: totals(() => 0),
  totalShippingPriceSet: totals(() => 0),
  discountApplications: (row, args) =>
    listPage(
      row.discounts.map((discount, index) => application(discount, index, row.currency)),
      args,
      ({ index }) => index,
    ),
  discountCodes: ({ discounts }) => discounts.filter(({ kind }) => kind === "code").map(({ title }) => title),
  lineItems: (row, args) => listPage(orderTotals(row).lines, args, ({ n }) => n),
};

const lineItem: Fields<OrderLine> = {
  id: ({ n }, _, { shop }) => `gid://shopify/LineItem/${shop.idOf(n)}`,
  title: ({ line }) => line.title,
  variantTitle: ({ line }) => line.variantTitle,
  name: ({ line }) => (line.variantTitle === null ? line.title : `${line.title} - ${line.variantTitle}`),
  quantity: ({ line }) => line.quantity,
  currentQuantity: ({ line, order, n }) => order.currentQuantities?.[n - order.n - 1] ?? line.quantity,
  sellingPlan: ({ line }) =>
    line.sellingPlan === null ? null : { sellingPlanId: line.sellingPlan, name: "Subscribe and save" },
  variant: ({ line }) => (line.variant === null ? null : { id: line.variant }),
  product: ({ line }) => (line.product === null ? null : { id: line.product }),
  originalUnitPriceSet: ({ line, order }) => moneyBag(line.price, order),
  originalTotalSet: ({ line, order }) => moneyBag(line.price * line.quantity, order),
  totalDiscountSet: ({ discount, order }) => moneyBag(discount, order),
  discountedTotalSet: ({ line, discount, order }) => moneyBag(line.price * line.quantity - discount, order),
  discountAllocations: ({ allocations, order }) =>
    allocations.map(({ index, discount, amount }) => ({
      allocatedAmountSet: moneyBag(amount, order),
      allocatedAmount: moneyBag(amount, order).shopMoney,
      discountApplication: application(discount, index, order.currency),
    })),
};

export const ORDER_FIELDS: Record<string, Fields<never>> = { Order: order, LineItem: lineItem };
