import type { NodePage } from "../paging.ts";
import { type ChangedNode, type Gid, listOperation, type Money, operation, pageOf } from "./operation.ts";

interface ShopMoney {
  shopMoney: Money;
}

export interface OrderLineNode {
  title: string;
  quantity: number;
  /** The quantity without refunded and removed pieces. Absent in orders that an earlier version staged. */
  currentQuantity?: number;
  contract?: Gid | null;
  // Absent where the app has no access to products; null where the product was deleted.
  variant?: Gid | null;
  product?: Gid | null;
  /** `presentmentMoney` is in the customer's currency. Absent in orders that an earlier version staged. */
  originalUnitPriceSet: ShopMoney & { presentmentMoney?: Money };
  discountAllocations: { allocatedAmountSet: ShopMoney; discountApplication: { title?: string; code?: string } }[];
}

const LINE_FIELDS = `title quantity currentQuantity contract { id } variant { id } product { id }
  originalUnitPriceSet { shopMoney { amount currencyCode } presentmentMoney { amount currencyCode } }
  discountAllocations { allocatedAmountSet { shopMoney { amount currencyCode } } discountApplication {
    ... on ManualDiscountApplication { title } ... on AutomaticDiscountApplication { title }
    ... on ScriptDiscountApplication { title } ... on DiscountCodeApplication { code } } }`;

export interface OrderNode {
  id: string;
  createdAt: string;
  processedAt: string | null;
  displayFinancialStatus: string | null;
  /** Absent in orders that an earlier version staged. */
  edited?: boolean;
  updatedAt?: string;
  lineItems: NodePage<OrderLineNode>;
}

const OWN_FIELDS = "id createdAt processedAt displayFinancialStatus edited updatedAt";

export const ORDER_FIELDS = `${OWN_FIELDS} lineItems(first: 10) { ${pageOf(LINE_FIELDS)} }`;

/** The fields of an order in a bulk query. In such a query, lines need an id. */
export const ORDER_BULK_FIELDS = `${OWN_FIELDS} lineItems { edges { node { id ${LINE_FIELDS} } } }`;

/** Counts orders. `query` is a filter in the platform's search syntax. */
export const ORDERS_COUNT = operation<{ query: string }, { ordersCount: { count: number } | null }>(
  "query OrdersCount($query: String) { ordersCount(query: $query, limit: null) { count } }",
);

export const ORDER_LINES = operation<
  { id: string; after: string | null },
  { order: { lineItems: NodePage<OrderLineNode> } | null }
>(
  `query OrderLines($id: ID!, $after: String) {
    order(id: $id) { lineItems(first: 50, after: $after) { ${pageOf(LINE_FIELDS)} } } }`,
);

/** Lists orders, sorted by the time of their last change. */
export const CHANGED_ORDERS = listOperation<ChangedNode>("ChangedOrders", "orders", "UPDATED_AT", "id updatedAt");
