import type { Page } from "../paging.ts";
import { type Gid, type Money, operation, type PageVariables, pageOf } from "./operation.ts";

interface ShopMoney {
  shopMoney: Money;
}

export interface OrderLineNode {
  title: string;
  quantity: number;
  contract: Gid | null;
  // Absent where the app has no access to products; null where the product was deleted.
  variant?: Gid | null;
  product?: Gid | null;
  originalUnitPriceSet: ShopMoney;
  discountAllocations: {
    allocatedAmountSet: ShopMoney;
    discountApplication: { title?: string; code?: string };
  }[];
}

const LINE_FIELDS = `title quantity contract { id } variant { id } product { id }
  originalUnitPriceSet { shopMoney { amount currencyCode } }
  discountAllocations { allocatedAmountSet { shopMoney { amount currencyCode } } discountApplication {
    ... on ManualDiscountApplication { title } ... on AutomaticDiscountApplication { title }
    ... on ScriptDiscountApplication { title } ... on DiscountCodeApplication { code } } }`;

export interface OrderNode {
  id: string;
  createdAt: string;
  processedAt: string | null;
  displayFinancialStatus: string | null;
  lineItems: Page<OrderLineNode>;
}

/** The lines of orders cost many points, so one query reads few orders. */
export const MAX_ORDERS_PER_QUERY = 5;

export const ORDERS_BY_ID = operation<{ ids: string[] }, { nodes: (OrderNode | null)[] }>(
  `query OrdersById($ids: [ID!]!) {
    nodes(ids: $ids) { ... on Order { id createdAt processedAt displayFinancialStatus
      lineItems(first: 10) { ${pageOf(LINE_FIELDS)} } } } }`,
);

export const ORDER_LINES = operation<
  { id: string; after: string | null },
  { order: { lineItems: Page<OrderLineNode> } | null }
>(
  `query OrderLines($id: ID!, $after: String) {
    order(id: $id) { lineItems(first: 50, after: $after) { ${pageOf(LINE_FIELDS)} } } }`,
);

/** An order with only the contracts of its lines. */
export interface OrderContractsNode {
  id: string;
  lineItems: Page<{ contract: Gid | null }>;
}

function orderContracts(lineCount: number): string {
  return `id lineItems(first: ${lineCount}) { ${pageOf("contract { id }")} }`;
}

/** Orders by the time of their last change. */
export const ORDERS = operation<PageVariables, { orders: Page<OrderContractsNode> }>(
  `query Orders($after: String, $query: String) {
    orders(first: 15, after: $after, query: $query, sortKey: UPDATED_AT) { ${pageOf(orderContracts(25))} } }`,
);

export const ORDER_CONTRACTS = operation<{ id: string }, { order: OrderContractsNode | null }>(
  `query OrderContracts($id: ID!) { order(id: $id) { ${orderContracts(50)} } }`,
);
