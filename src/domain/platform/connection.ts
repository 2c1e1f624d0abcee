/**
 * How a shop gets access tokens: repeatedly with the app's client credentials; one permanent token by hand; or in
 * pairs, where the refresh token gives the next pair.
 */
export type ConnectionKind = "client_credentials" | "token" | "refresh";

export interface Tokens {
  accessToken: string;
  /** null unless tokens come in pairs. */
  refreshToken: string | null;
  /** When the access token expires, epoch milliseconds; null for a permanent one. */
  expiresAt: number | null;
}

/** Scopes that must be granted: contracts with their billing, customers, orders. */
export const NEEDED_SCOPES = ["read_own_subscription_contracts", "read_customers", "read_orders"];
/** Scopes that include another scope. A write scope always includes its read scope. */
const IMPLIED_BY: Record<string, readonly string[]> = { read_orders: ["read_all_orders"] };
/**
 * Scopes that we ask a shop for. Without the last three, we cannot see orders older than 60 days, products of order
 * lines, and merges of customers.
 */
export const ASKED_SCOPES = [...NEEDED_SCOPES, "read_all_orders", "read_products", "read_customer_merge"];

/** The needed scopes that were not granted. */
export function missingScopes(granted: readonly string[]): string[] {
  return NEEDED_SCOPES.filter(
    (scope) =>
      ![scope, scope.replace(/^read_/, "write_"), ...(IMPLIED_BY[scope] ?? [])].some((one) => granted.includes(one)),
  );
}
