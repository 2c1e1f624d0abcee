/**
 * A failed request to the platform. The reason says what may help:
 * - `unavailable`: the same request may work later.
 * - `incomplete`: a part of the answer failed. Requests about other objects work; the same request may work later.
 * - `outdated`: the answer is older than a change that we know. A later answer shows the change.
 * - `unauthorized`: the operator has to act, because the connection is refused or an access scope is missing.
 * - `refused`: the request itself is wrong, and the same request gets the same answer.
 */
export class PlatformError extends Error {
  override readonly name = "PlatformError";
  readonly reason: "unavailable" | "incomplete" | "outdated" | "unauthorized" | "refused";
  /** The HTTP status; null if there was no response. */
  readonly status: number | null = null;
  /** How long the platform says to wait before the next request. */
  readonly retryAfterMs: number | undefined;
  /** Whether too few points are the only cause. Points refill, so the client waits and repeats the request. */
  readonly isThrottled: boolean = false;
  /** Whether the platform refuses all requests about the shop until somebody acts. The message says what to do. */
  readonly needsMerchant: boolean = false;
  /** The shop's new domain, if the platform redirects to it. */
  readonly movedTo: string | undefined;
  /** Whether the query costs too many points. A query for fewer objects may work. */
  readonly isTooCostly: boolean = false;
  /** Whether the platform no longer has a field that the query reads. Only a newer version of this program helps. */
  readonly isObsolete: boolean = false;
  /** Whether the app is not allowed to read a part of the answer. */
  readonly isDenied: boolean = false;
  /** The level of protected customer data that the app has no approval for. */
  readonly missingLevel: DataLevel | undefined;
  /** The data that the platform sent, and the error of each failed part; undefined if an error names no part. */
  readonly partial: PartialAnswer | undefined;

  constructor(reason: PlatformError["reason"], message: string, details: PlatformErrorDetails = {}) {
    super(message);
    this.reason = reason;
    Object.assign(this, details);
  }
}

/** Protected customer data: customers and orders are level 1, their names and e-mail are level 2. */
export type DataLevel = 1 | 2;

type PlatformErrorDetails = Partial<Omit<PlatformError, keyof Error | "reason">>;

export interface PartialAnswer {
  /** Empty if the answer has no data. */
  data: object;
  errors: { path: readonly (string | number)[]; error: PlatformError }[];
}

/**
 * Whether individual objects may have caused the error. Then a query for fewer objects may work. Failed connections and
 * HTTP errors have other causes.
 */
export function mayBeOneObject(thrown: unknown): thrown is PlatformError {
  if (!(thrown instanceof PlatformError) || thrown.isObsolete) return false;
  return thrown.isTooCostly || thrown.reason === "incomplete" || (thrown.reason === "refused" && thrown.status === 200);
}

/** Whether the app has no approval for a whole list, such as all orders. */
export function lacksApproval(thrown: unknown): boolean {
  return isPlatformError(thrown, "unauthorized") && thrown.missingLevel !== undefined;
}

/** Whether the failure lasts until a person acts. Then retries wait longer, and no single object is the cause. */
export function needsAction(thrown: unknown): boolean {
  return thrown instanceof PlatformError && (thrown.needsMerchant || thrown.isObsolete);
}

/** Whether the same request may work later. */
export function isTemporary(thrown: unknown): boolean {
  return isPlatformError(thrown, "unavailable") || isPlatformError(thrown, "incomplete");
}

export function isPlatformError(thrown: unknown, reason: PlatformError["reason"]): thrown is PlatformError {
  return thrown instanceof PlatformError && thrown.reason === reason;
}
