/**
 * How a shop's tokens come: by the app's client credentials, again and again; given by hand, for good; or in pairs, of which
 * the refresh token gives the next pair.
 */
export type ConnectionKind = "client_credentials" | "token" | "refresh";

export interface Tokens {
  accessToken: string;
  /** null unless tokens come in pairs. */
  refreshToken: string | null;
  /** When the access token ends, epoch milliseconds; null for one that doesn't. */
  expiresAt: number | null;
}

/** What has to be granted: contracts with their billing, the people who hold them, the orders. */
const NEEDED_SCOPES = ["read_own_subscription_contracts", "read_customers", "read_orders"];
/** Writing implies reading, and what is whole implies its part. */
const IMPLIED_BY: Record<string, readonly string[]> = { read_orders: ["read_all_orders"] };
/** What a shop is asked for. Without the last two, orders older than 60 days and the products of order lines stay hidden. */
export const ASKED_SCOPES = [...NEEDED_SCOPES, "read_all_orders", "read_products"];

/** Of the needed scopes, those that were not granted. */
export function missingScopes(granted: readonly string[]): string[] {
  return NEEDED_SCOPES.filter((scope) => ![scope, scope.replace(/^read_/, "write_"), ...(IMPLIED_BY[scope] ?? [])].some((one) => granted.includes(one)));
}
