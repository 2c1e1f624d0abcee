import { CONTRACT_FIELDS, type ContractNode } from "./contracts.ts";
import { operation } from "./operation.ts";
import { ORDER_FIELDS, type OrderNode } from "./orders.ts";

/** The platform takes no more ids in one query. */
export const MAX_NODES_PER_QUERY = 250;

type Node = ({ __typename: "SubscriptionContract" } & ContractNode) | ({ __typename: "Order" } & OrderNode);

/** Contracts and orders by their gids, in the same order; null for what the platform does not show. */
export const NODES = operation<{ ids: string[] }, { nodes: (Node | null)[] }>(
  `query Nodes($ids: [ID!]!) {
    nodes(ids: $ids) {
      __typename ... on SubscriptionContract { ${CONTRACT_FIELDS} } ... on Order { ${ORDER_FIELDS} } } }`,
);
