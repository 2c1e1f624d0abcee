import type { Page } from "../paging.ts";
import { CONTRACT_FIELDS, type ContractNode } from "./contracts.ts";
import { type Gid, operation, type PageVariables, pageOf } from "./operation.ts";

type AttemptState =
  | { __typename: "SubscriptionBillingAttemptSuccessState"; order: Gid | null }
  | {
      __typename: "SubscriptionBillingAttemptFailedState";
      error: { general?: string; payment?: string; inventory?: string };
    }
  | { __typename: "SubscriptionBillingAttemptActionRequiredState" | "SubscriptionBillingAttemptPendingState" };

export interface AttemptNode {
  createdAt: string;
  completedAt: string | null;
  state: AttemptState;
}

// The code of each kind of error has a type of its own, so each needs a name of its own.
const ATTEMPT_FIELDS = `createdAt completedAt state { __typename
  ... on SubscriptionBillingAttemptSuccessState { order { id } }
  ... on SubscriptionBillingAttemptFailedState { error {
    ... on SubscriptionBillingAttemptGeneralError { general: code }
    ... on SubscriptionBillingAttemptPaymentError { payment: code }
    ... on SubscriptionBillingAttemptInventoryError { inventory: code } } } }`;

export interface CycleNode {
  cycleIndex: number;
  skipped: boolean;
  billingAttemptExpectedDate: string;
  billingAttempts: Page<AttemptNode>;
}

const CYCLES = `subscriptionBillingCycles(contractId: $id, first: $count, sortKey: CYCLE_INDEX,
    billingCyclesIndexRangeSelector: {startIndex: $from, endIndex: $to}) {
  nodes { cycleIndex skipped billingAttemptExpectedDate billingAttempts(first: 6) { ${pageOf(ATTEMPT_FIELDS)} } } }`;

/** More cycles in one query would cost too many points. */
export const MAX_CYCLES_PER_QUERY = 12;

/** Cycles `from` to `to` of a contract. */
export interface CyclesVariables {
  id: string;
  from: number;
  to: number;
  /** The number of these cycles. */
  count: number;
}

interface CyclesData {
  subscriptionBillingCycles: { nodes: CycleNode[] };
}

export const BILLING_CYCLES = operation<CyclesVariables, CyclesData>(
  `query BillingCycles($id: ID!, $from: Int!, $to: Int!, $count: Int!) { ${CYCLES} }`,
);

export const CONTRACT_WITH_CYCLES = operation<
  CyclesVariables,
  CyclesData & { subscriptionContract: ContractNode | null }
>(
  `query ContractWithCycles($id: ID!, $from: Int!, $to: Int!, $count: Int!) {
    subscriptionContract(id: $id) { ${CONTRACT_FIELDS} } ${CYCLES} }`,
);

export const CYCLE_ATTEMPTS = operation<
  { id: string; index: number; after: string | null },
  { subscriptionBillingCycle: { billingAttempts: Page<AttemptNode> } | null }
>(
  `query CycleAttempts($id: ID!, $index: Int!, $after: String) {
    subscriptionBillingCycle(billingCycleInput: {contractId: $id, selector: {index: $index}}) {
      billingAttempts(first: 50, after: $after) { ${pageOf(ATTEMPT_FIELDS)} } } }`,
);

/** The contracts of attempts, by the time when the attempts began. */
export const ATTEMPTS = operation<PageVariables, { subscriptionBillingAttempts: Page<{ subscriptionContract: Gid }> }>(
  `query Attempts($after: String, $query: String) {
    subscriptionBillingAttempts(first: 100, after: $after, query: $query, sortKey: CREATED_AT) {
      ${pageOf("subscriptionContract { id }")} } }`,
);
