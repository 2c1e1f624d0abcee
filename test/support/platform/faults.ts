export interface FaultInfo {
  shop: string;
  operation: string;
  /** The number of the request among those of this shop for this operation, from 1. */
  n: number;
  variables: Record<string, unknown>;
}

/**
 * What goes wrong with a request: `reset` closes the connection before anything is done, `lost` after everything is
 * done but before the answer. An answer can be replaced, or held back for milliseconds or until a promise resolves.
 */
export type Fault =
  | undefined
  | "reset"
  | "lost"
  | { status: number; body?: string; headers?: Record<string, string> }
  | { delay: number }
  | { until: Promise<unknown> };
