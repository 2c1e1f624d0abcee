import type { ContractLineNode, ContractNode } from "../../src/shopify/api/operations/contracts.ts";

/** Gids in the nodes below. The nodes have the form in which queries of the platform's Admin API return them. */
export const CUSTOMER = "gid://shopify/Customer/1";
export const CONTRACT = "gid://shopify/SubscriptionContract/1";
export const ORDER = "gid://shopify/Order/1";
export const VARIANT = "gid://shopify/ProductVariant/1";
export const PRODUCT = "gid://shopify/Product/1";

/** A page of nodes; without a cursor, the last page. */
export function pageOfNodes<T>(nodes: T, endCursor: string | null = null) {
  return { nodes, pageInfo: { hasNextPage: endCursor !== null, endCursor } };
}

export function euros(amount: string) {
  return { amount, currencyCode: "EUR" };
}

export function contractLine(fields: Partial<ContractLineNode> = {}): ContractLineNode {
  return {
    title: "Tea",
    quantity: 2,
    productId: PRODUCT,
    variantId: VARIANT,
    sellingPlanId: null,
    currentPrice: euros("12.5"),
    lineDiscountedPrice: euros("25.0"),
    ...fields,
  };
}

export function contractNode(fields: Partial<ContractNode> = {}): ContractNode {
  return {
    id: CONTRACT,
    status: "ACTIVE",
    revisionId: "9007199254740993",
    createdAt: "2026-01-01T00:00:00Z",
    updatedAt: "2026-01-01T00:00:00Z",
    nextBillingDate: "2026-02-01T00:00:00Z",
    customer: null,
    billingPolicy: { interval: "MONTH", intervalCount: 1, maxCycles: null },
    originOrder: null,
    lines: pageOfNodes([]),
    ...fields,
  };
}
