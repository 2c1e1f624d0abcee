export interface FaultInfo {
  shop: string;
  operation: string;
  /** Counts the shop's requests of this operation, from 1. */
  n: number;
  variables: Record<string, unknown>;
}

/**
 * A fault of a request. `reset` closes the connection before the request is carried out; `lost` closes it afterwards,
 * without an answer. A fault can also replace the answer, or delay it until a promise resolves.
 */
export type Fault =
  | undefined
  | "reset"
  | "lost"
  | { status: number; body?: string; headers?: Record<string, string> }
  | { until: Promise<unknown> };
