import type { NodePage } from "../paging.ts";
import { ATTEMPT_FIELDS, type AttemptNode } from "./attempts.ts";
import { CUSTOMER_FIELDS, type CustomerNode } from "./customers.ts";
import {
  type ChangedNode,
  type Gid,
  listOperation,
  type Money,
  type NoVariables,
  operation,
  pageOf,
} from "./operation.ts";
import { ORDER_FIELDS, type OrderNode } from "./orders.ts";

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
  // Absent if the app has no approval for customers.
  customer?: CustomerNode | null;
  billingPolicy: { interval: string; intervalCount: number; maxCycles: number | null };
  // Absent if the app has no approval for orders.
  originOrder?: Gid | null;
  lines: NodePage<ContractLineNode>;
}

const CONTRACT_FIELDS = `id status revisionId createdAt updatedAt nextBillingDate
  customer { ${CUSTOMER_FIELDS} } billingPolicy { interval intervalCount maxCycles } originOrder { id }
  lines(first: 10) { ${pageOf(LINE_FIELDS)} }`;

/** A contract with the attempts of all its cycles. The platform does not say which cycle an attempt is for. */
export interface ContractWithAttempts extends ContractNode {
  billingAttempts: NodePage<AttemptNode>;
}

/** Lists contracts, sorted by the time of their last change. */
export const CHANGED_CONTRACTS = listOperation<ChangedNode & Pick<ContractNode, "revisionId">>(
  "ChangedContracts",
  "subscriptionContracts",
  "UPDATED_AT",
  "id updatedAt revisionId",
);

/** Lists contracts, sorted by creation time. Changes do not move a contract in this list. */
export const ALL_CONTRACTS = listOperation<ContractWithAttempts>(
  "AllContracts",
  "subscriptionContracts",
  "CREATED_AT",
  `${CONTRACT_FIELDS} billingAttempts(first: 50) { ${pageOf(ATTEMPT_FIELDS)} }`,
);

/** Lists the ids of all contracts, to count them. */
export const CONTRACT_IDS = listOperation<Gid & { createdAt: string }>(
  "ContractIds",
  "subscriptionContracts",
  "CREATED_AT",
  "id createdAt",
);

interface CreationTimes {
  subscriptionContracts: { nodes: { createdAt: string }[] };
}

/** Reads when the newest contract was made. A load reads by creation time, so the two ends show its progress. */
export const NEWEST_CONTRACT = operation<NoVariables, CreationTimes>(
  `query NewestContract {
    subscriptionContracts(first: 1, sortKey: CREATED_AT, reverse: true) { nodes { createdAt } } }`,
);

/** Reads the time at which the oldest contract was made. No order of a contract is much older than this time. */
export const OLDEST_CONTRACT = operation<NoVariables, CreationTimes>(
  "query OldestContract { subscriptionContracts(first: 1, sortKey: CREATED_AT) { nodes { createdAt } } }",
);

export const CONTRACT_LINES = operation<
  { id: string; after: string | null },
  { subscriptionContract: { lines: NodePage<ContractLineNode> } | null }
>(
  `query ContractLines($id: ID!, $after: String) {
    subscriptionContract(id: $id) { lines(first: 100, after: $after) { ${pageOf(LINE_FIELDS)} } } }`,
);

/** Maximum number of ids that the platform takes in one query. */
export const MAX_NODES_PER_QUERY = 250;

type ReadNode = ({ __typename: "SubscriptionContract" } & ContractNode) | ({ __typename: "Order" } & OrderNode);

/** Reads contracts and orders, and keeps the sequence of `ids`. An object that the platform does not show is null. */
export const NODES = operation<{ ids: string[] }, { nodes: (ReadNode | null)[] }>(
  `query Nodes($ids: [ID!]!) {
    nodes(ids: $ids) {
      __typename ... on SubscriptionContract { ${CONTRACT_FIELDS} } ... on Order { ${ORDER_FIELDS} } } }`,
  // The cost does not depend on the number of ids.
  () => 1,
  ({ ids }) => ids.length > 1,
);
