import type { NodePage } from "../paging.ts";
import { type Gid, listOperation, operation, pageOf } from "./operation.ts";

type AttemptState =
  | { __typename: "SubscriptionBillingAttemptSuccessState"; order?: Gid | null }
  | {
      __typename: "SubscriptionBillingAttemptFailedState";
      error: { general?: string; payment?: string; inventory?: string };
    }
  | { __typename: "SubscriptionBillingAttemptActionRequiredState" | "SubscriptionBillingAttemptPendingState" };

export interface AttemptNode {
  id: string;
  idempotencyKey: string;
  createdAt: string;
  completedAt: string | null;
  state: AttemptState;
}

// Each kind of error has its own type of `code`, so each `code` needs an alias.
export const ATTEMPT_FIELDS = `id idempotencyKey createdAt completedAt state { __typename
  ... on SubscriptionBillingAttemptSuccessState { order { id } }
  ... on SubscriptionBillingAttemptFailedState { error {
    ... on SubscriptionBillingAttemptGeneralError { general: code }
    ... on SubscriptionBillingAttemptPaymentError { payment: code }
    ... on SubscriptionBillingAttemptInventoryError { inventory: code } } } }`;

export const CYCLE_ATTEMPTS = operation<
  { id: string; index: number; after: string | null },
  { subscriptionBillingCycle: { billingAttempts: NodePage<AttemptNode> } | null }
>(
  `query CycleAttempts($id: ID!, $index: Int!, $after: String) {
    subscriptionBillingCycle(billingCycleInput: {contractId: $id, selector: {index: $index}}) {
      billingAttempts(first: 50, after: $after) { ${pageOf(ATTEMPT_FIELDS)} } } }`,
);

export interface ContractAttempt extends Pick<AttemptNode, "id" | "createdAt" | "completedAt"> {
  state: Pick<AttemptState, "__typename">;
  subscriptionContract: Gid;
}

/** Lists attempts with their contracts, sorted by the start of the attempts. */
export const ATTEMPTS = listOperation<ContractAttempt>(
  "Attempts",
  "subscriptionBillingAttempts",
  "CREATED_AT",
  "id createdAt completedAt state { __typename } subscriptionContract { id }",
  "subscriptionContract",
);
