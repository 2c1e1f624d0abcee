import type { Page } from "../paging.ts";
import { ATTEMPT_FIELDS, type AttemptNode } from "./attempts.ts";
import { CUSTOMER_FIELDS, type CustomerNode } from "./customers.ts";
import { type Gid, type Money, type NoVariables, operation, type PageVariables, pageOf } from "./operation.ts";

export interface ContractLineNode {
  title: string;
  quantity: number;
  productId: string | null;
  variantId: string | null;
  sellingPlanId: string | null;
  currentPrice: Money;
  lineDiscountedPrice: Money;
}

export const LINE_FIELDS = `title quantity productId variantId sellingPlanId
  currentPrice { amount currencyCode } lineDiscountedPrice { amount currencyCode }`;

export interface ContractNode {
  id: string;
  status: string;
  revisionId: string;
  createdAt: string;
  updatedAt: string;
  nextBillingDate: string | null;
  customer: CustomerNode | null;
  billingPolicy: { interval: string; intervalCount: number };
  originOrder: Gid | null;
  lines: Page<ContractLineNode>;
}

export const CONTRACT_FIELDS = `id status revisionId createdAt updatedAt nextBillingDate
  customer { ${CUSTOMER_FIELDS} } billingPolicy { interval intervalCount } originOrder { id }
  lines(first: 10) { ${pageOf(LINE_FIELDS)} }`;

/** A contract with its attempts, whatever their cycle. The platform does not say which cycle an attempt is for. */
export interface ContractWithAttempts extends ContractNode {
  billingAttempts: Page<AttemptNode>;
}

const WITH_ATTEMPTS = `${CONTRACT_FIELDS} billingAttempts(first: 50) { ${pageOf(ATTEMPT_FIELDS)} }`;

/** Contracts by the time of their last change. */
export const CHANGED_CONTRACTS = operation<PageVariables, { subscriptionContracts: Page<Gid & { updatedAt: string }> }>(
  `query ChangedContracts($after: String, $query: String) {
    subscriptionContracts(first: 250, after: $after, query: $query, sortKey: UPDATED_AT) {
      ${pageOf("id updatedAt")} } }`,
);

/** Contracts in an order that does not change. */
export const ALL_CONTRACTS = operation<PageVariables, { subscriptionContracts: Page<ContractWithAttempts> }>(
  `query AllContracts($after: String, $query: String) {
    subscriptionContracts(first: 250, after: $after, query: $query, sortKey: CREATED_AT) {
      ${pageOf(WITH_ATTEMPTS)} } }`,
);

/** When the newest contract was made: it shows how far a load in the order of creation is. */
export const NEWEST_CONTRACT = operation<NoVariables, { subscriptionContracts: { nodes: { createdAt: string }[] } }>(
  `query NewestContract {
    subscriptionContracts(first: 1, sortKey: CREATED_AT, reverse: true) { nodes { createdAt } } }`,
);

/** When the oldest contract was made: no order of a contract is much older. */
export const OLDEST_CONTRACT = operation<NoVariables, { subscriptionContracts: { nodes: { createdAt: string }[] } }>(
  "query OldestContract { subscriptionContracts(first: 1, sortKey: CREATED_AT) { nodes { createdAt } } }",
);

interface LinesVariables {
  id: string;
  after: string | null;
}

export const CONTRACT_LINES = operation<
  LinesVariables,
  { subscriptionContract: { lines: Page<ContractLineNode> } | null }
>(
  `query ContractLines($id: ID!, $after: String) {
    subscriptionContract(id: $id) { lines(first: 100, after: $after) { ${pageOf(LINE_FIELDS)} } } }`,
);
