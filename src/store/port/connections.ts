import type { ConnectionKind, Tokens } from "../../domain/platform/connection.ts";

/** How a shop is connected to the platform. Times in epoch milliseconds. */
interface Connection {
  kind: ConnectionKind;
  scopes: string[];
  expiresAt: number | null;
  connectedAt: number;
  /** When the shop was connected first. What happened before queues no events. */
  eventsSince: number;
  /** Why the platform refuses the connection, and what to do; null while it accepts it. */
  trouble: string | null;
}

export interface ConnectionStore {
  find(shopId: number): Promise<Connection | undefined>;
  /** Ids of the connected shops, ascending. */
  list(): Promise<number[]>;
  tokens(shopId: number): Promise<Tokens | undefined>;
  /** Connects a shop, or connects it again. */
  connect(shopId: number, kind: ConnectionKind, tokens: Tokens, scopes: readonly string[], now: number): Promise<void>;
  /**
   * Lets one process at a time renew the tokens: a refresh token ends soon after its first use.
   * @returns whether this process may, until `until`
   */
  beginRenewal(shopId: number, process: string, now: number, until: number): Promise<boolean>;
  /**
   * Stores the renewed tokens, a pair in one write, and ends the renewal. The trouble stays until the platform accepts
   * them.
   */
  renew(shopId: number, tokens: Tokens): Promise<void>;
  /** Ends a renewal that brought no tokens. */
  endRenewal(shopId: number, process: string): Promise<void>;
  /** Replaces the scopes that the shop grants. */
  setScopes(shopId: number, scopes: readonly string[]): Promise<void>;
  /** Notes why the platform refuses the connection, null where it accepts it. @returns whether this changed */
  setTrouble(shopId: number, trouble: string | null): Promise<boolean>;
  /** Forgets the tokens of a shop that was connected before a time. @returns whether there were any */
  disconnect(shopId: number, before: number): Promise<boolean>;
}
