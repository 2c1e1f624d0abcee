import type { ConnectionKind, Tokens } from "../../domain/platform/connection.ts";

/** The connection of a shop to the platform. Times in epoch milliseconds. */
interface Connection {
  kind: ConnectionKind;
  scopes: string[];
  expiresAt: number | null;
  connectedAt: number;
  /** The first connection of the shop. Changes from before queue no events. */
  eventsSince: number;
  /** Why the platform refuses the connection, and the remedy; null while it accepts it. */
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
   * Reserves the renewal of the tokens for one process: a refresh token ends soon after its first use.
   * @returns whether this process may renew, until `until`
   */
  beginRenewal(shopId: number, process: string, now: number, until: number): Promise<boolean>;
  /** Stores the renewed pair of tokens and ends the renewal. The trouble stays until the platform accepts them. */
  renew(shopId: number, tokens: Tokens): Promise<void>;
  /** Ends a failed renewal. */
  endRenewal(shopId: number, process: string): Promise<void>;
  /** Replaces the granted scopes. */
  setScopes(shopId: number, scopes: readonly string[]): Promise<void>;
  /** Sets `trouble`. @returns whether it changed */
  setTrouble(shopId: number, trouble: string | null): Promise<boolean>;
  /** Forgets the tokens of a connection from before a time. @returns whether any existed */
  disconnect(shopId: number, before: number): Promise<boolean>;
}
