import type { NodePage } from "../paging.ts";
import { ATTEMPT_FIELDS, type AttemptNode } from "./attempts.ts";
import { type ContractLineNode, LINE_FIELDS } from "./contracts.ts";
import { type Operation, operation, pageOf } from "./operation.ts";

/** A cycle without its attempts. */
export interface CycleState {
  cycleIndex: number;
  status: "BILLED" | "UNBILLED";
  skipped: boolean;
  edited: boolean;
  cycleStartAt: string;
  billingAttemptExpectedDate: string;
}

const CYCLE_STATE_FIELDS = "cycleIndex status skipped edited cycleStartAt billingAttemptExpectedDate";

export interface CycleNode extends CycleState {
  billingAttempts: NodePage<AttemptNode>;
}

const CYCLE_FIELDS = `${CYCLE_STATE_FIELDS} billingAttempts(first: 6) { ${pageOf(ATTEMPT_FIELDS)} }`;

interface CyclesData {
  subscriptionBillingCycles: { nodes: CycleNode[] };
}

/** Reads cycles `from` to `to` of a contract. `count` is the number of these cycles. */
export const BILLING_CYCLES = operation<{ id: string; from: number; to: number; count: number }, CyclesData>(
  `query BillingCycles($id: ID!, $from: Int!, $to: Int!, $count: Int!) {
    subscriptionBillingCycles(contractId: $id, first: $count, sortKey: CYCLE_INDEX,
      billingCyclesIndexRangeSelector: {startIndex: $from, endIndex: $to}) { nodes { ${CYCLE_FIELDS} } } }`,
  ({ count }) => count,
);

/** Reads the cycles of a contract that are billed between two dates. */
export const BILLING_CYCLES_BY_DATE = operation<{ id: string; start: string; end: string; count: number }, CyclesData>(
  `query BillingCyclesByDate($id: ID!, $start: DateTime!, $end: DateTime!, $count: Int!) {
    subscriptionBillingCycles(contractId: $id, first: $count, sortKey: CYCLE_INDEX,
      billingCyclesDateRangeSelector: {startDate: $start, endDate: $end}) { nodes { ${CYCLE_FIELDS} } } }`,
  ({ count }) => count,
);

/** A cycle without its attempts costs one point, so one query can look up the cycles of many contracts. */
export const MAX_CYCLES_PER_LOOKUP = 200;

/** Identifies a cycle of a contract. */
export interface CycleAddress {
  contract: string;
  index: number;
}

/** Returns an operation that looks up many cycles, and its variables. The data names the cycles `c0`, `c1` etc. */
export function cycleLookup(addresses: readonly CycleAddress[]): {
  operation: Operation<Record<string, string | number>, Record<string, CycleState | null>>;
  variables: Record<string, string | number>;
} {
  const declared = addresses.map((_, n) => `$i${n}: ID!, $n${n}: Int!`).join(", ");
  const fields = addresses.map(
    (_, n) =>
      `c${n}: subscriptionBillingCycle(billingCycleInput: {contractId: $i${n}, selector: {index: $n${n}}})
       { ${CYCLE_STATE_FIELDS} }`,
  );
  const variables = addresses.flatMap(({ contract, index }, n) => [
    [`i${n}`, contract],
    [`n${n}`, index],
  ]);
  return {
    operation: operation(
      `query CycleLookup(${declared}) { ${fields.join(" ")} }`,
      () => addresses.length,
      () => addresses.length > 1,
    ),
    variables: Object.fromEntries(variables),
  };
}

/** Reads the lines of an edited cycle. `editedContract` is null if only the cycle's date was edited. */
export const EDITED_LINES = operation<
  { id: string; index: number; after: string | null },
  { subscriptionBillingCycle: { editedContract: { lines: NodePage<ContractLineNode> } | null } | null }
>(
  `query EditedLines($id: ID!, $index: Int!, $after: String) {
    subscriptionBillingCycle(billingCycleInput: {contractId: $id, selector: {index: $index}}) {
      editedContract { lines(first: 100, after: $after) { ${pageOf(LINE_FIELDS)} } } } }`,
);
