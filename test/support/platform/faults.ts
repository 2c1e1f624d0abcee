export interface FaultInfo {
  shop: string;
  operation: string;
  /** Counts the shop's requests of this operation, from 1. */
  n: number;
  variables: Record<string, unknown>;
}

/** Whether a request looks up billing cycles of the contract, for a page of contracts. */
export function isLookupOf(contract: string, { operation, variables }: FaultInfo): boolean {
  return operation.startsWith("CycleLookup") && Object.values(variables).includes(contract);
}

/**
 * A fault of a request. `reset` closes the connection before the request is carried out; `lost` closes it afterwards,
 * without an answer. A fault can also replace the answer, or delay it until a promise resolves, or both.
 */
export type Fault =
  | undefined
  | "reset"
  | "lost"
  | { status: number; body?: string; headers?: Record<string, string>; until?: Promise<unknown> }
  | { until: Promise<unknown> };
