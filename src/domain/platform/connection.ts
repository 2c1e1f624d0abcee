/**
 * How a shop gets access tokens. `client_credentials`: the app's credentials get each token. `token`: an operator gave
 * one permanent token. `refresh`: tokens come in pairs, and the refresh token gets the next pair. `app_key`: a JWT gets
 * each token, and the app's own private key signs the JWT.
 */
export type ConnectionKind = "client_credentials" | "token" | "refresh" | "app_key";

export interface Tokens {
  accessToken: string;
  /** null if tokens do not come in pairs. */
  refreshToken: string | null;
  /** When the access token expires, epoch milliseconds; null for a permanent token. */
  expiresAt: number | null;
  /** The app's private key as a JWK. Only connections of the kind `app_key` have it. */
  appKey?: string;
}

/** Time between an uninstallation and the moment when the platform cancels the app's contracts that have not ended. */
export const CONTRACTS_END_AFTER_MS = 48 * 3_600_000;

/** Scopes that must be granted: contracts with their billing, customers, orders. */
export const NEEDED_SCOPES = ["read_own_subscription_contracts", "read_customers", "read_orders"];
/** Scopes that include another scope. A write scope always includes its read scope. */
const IMPLIED_BY: Record<string, readonly string[]> = { read_orders: ["read_all_orders"] };
/** Scopes that we ask a shop for. The last two let us see orders older than 60 days, and products of order lines. */
export const ASKED_SCOPES = [...NEEDED_SCOPES, "read_all_orders", "read_products"];
/**
 * Scopes that we ask for only if the operator wants them. The platform never merges a customer who had a subscription,
 * so we rarely need to know about merges.
 */
export const OPTIONAL_SCOPES = ["read_customer_merge"];

/** Returns the needed scopes that were not granted. */
export function missingScopes(granted: readonly string[]): string[] {
  return NEEDED_SCOPES.filter(
    (scope) =>
      ![scope, scope.replace(/^read_/, "write_"), ...(IMPLIED_BY[scope] ?? [])].some((one) => granted.includes(one)),
  );
}
