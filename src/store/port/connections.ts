import type { ConnectionKind, Tokens } from "../../domain/platform/connection.ts";
import type { Shop } from "../../domain/shop.ts";
import type { NewShop } from "./shops.ts";

/** A shop's connection to the platform. Times in epoch milliseconds. */
export interface Connection {
  kind: ConnectionKind;
  scopes: string[];
  expiresAt: number | null;
  connectedAt: number;
  /** Time of the shop's first connection. Changes before this time queue no events. */
  eventsSince: number;
  /** Why the platform refuses the connection, and the remedy; null while the platform accepts it. */
  trouble: string | null;
  /** When `trouble` began; null without trouble, or if an older version stored the trouble. */
  troubleSince: number | null;
}

/** Times in epoch milliseconds. */
export interface ConnectedShop {
  shopId: number;
  connectedAt: number;
}

/** When a shop uninstalled the app, epoch milliseconds. */
export interface Uninstallation {
  shopId: number;
  uninstalledAt: number;
}

/**
 * What a warning is about:
 * - `answers`, `webhooks`: the version of the platform's answers or webhooks
 * - `operation`: an operation that asks for a field that the platform no longer has
 * - `domain`: the domain that the shop has at the platform now
 * - `level`: a level of protected customer data that the app is not allowed to read
 */
export type WarningKind = "answers" | "webhooks" | `operation ${string}` | `domain ${string}` | `level ${1 | 2}`;

/** What the operator has to know about a connection that works. Times in epoch milliseconds. */
export interface ConnectionWarning {
  kind: WarningKind;
  text: string;
  since: number;
}

/** A shop to connect, and its tokens. The platform issued the tokens in exchange for a staff member's ID token. */
export interface NewInstallation {
  /** Added to the database if no shop has this domain. */
  shop: NewShop;
  kind: ConnectionKind;
  tokens: Tokens;
  scopes: readonly string[];
  /** Epoch milliseconds. */
  connectedAt: number;
}

export interface ConnectionStore {
  find(shopId: number): Promise<Connection | undefined>;
  tokens(shopId: number): Promise<Tokens | undefined>;
  /**
   * Connects a shop, or connects it again. After an uninstallation, `eventsSince` is kept. If the uninstallation was so
   * long ago that the mirror may have marked contracts as ended, `SyncStore.unloaded` lists the shop again.
   */
  connect(shopId: number, kind: ConnectionKind, tokens: Tokens, scopes: readonly string[], now: number): Promise<void>;
  /**
   * Reserves the exchange of a shop's ID token for a process, until `until`. The shop need not exist yet.
   * @returns whether the process got the reservation
   */
  beginExchange(domain: string, process: string, now: number, until: number): Promise<boolean>;
  /** Extends the reservation of a process. Changes nothing if the reservation has passed to another process. */
  extendExchange(domain: string, process: string, until: number): Promise<void>;
  /**
   * Stores the shop, its connection and its tokens in one transaction, and ends the exchange.
   * @returns the shop; undefined if the process no longer has the reservation: nothing is stored then
   * @throws SdsError `conflict` while the shop is being removed
   */
  install(process: string, installation: NewInstallation): Promise<Shop | undefined>;
  /** Ends the reservation of a failed exchange. */
  endExchange(domain: string, process: string): Promise<void>;
  /** Ends the reservations of all processes. Call this only if no other process uses the database. */
  endAllExchanges(): Promise<void>;
  /**
   * Reserves the renewal of the tokens for a process, until `until`. Two processes must not renew at the same time,
   * because a refresh token expires soon after its first use.
   * @returns whether the process got the reservation
   */
  beginRenewal(shopId: number, process: string, now: number, until: number): Promise<boolean>;
  /**
   * Stores renewed tokens and ends the renewal. Changes nothing if the stored tokens are no longer `before`. Keeps
   * `trouble`, because the platform has not accepted the new tokens yet.
   */
  renew(shopId: number, tokens: Tokens, before: Pick<Tokens, "expiresAt">): Promise<void>;
  /** Ends the reservation of a failed renewal. */
  endRenewal(shopId: number, process: string): Promise<void>;
  /** Replaces the granted scopes. */
  setScopes(shopId: number, scopes: readonly string[]): Promise<void>;
  /** Sets `trouble`. If the trouble is new or different, its start time is `now`. @returns whether `trouble` changed */
  setTrouble(shopId: number, trouble: string | null, now: number): Promise<boolean>;
  /**
   * Stores a warning. If the text is new or different, the warning begins now. Ignored if the shop is not connected.
   * @returns whether to log the warning: the text is new or different, or was logged at least a day ago
   */
  warn(shopId: number, kind: WarningKind, text: string, now: number): Promise<boolean>;
  endWarning(shopId: number, kind: WarningKind): Promise<void>;
  /**
   * Returns the warnings of a shop, the oldest first. Connecting the shop again ends all warnings. Disconnecting the
   * shop ends all except the warning about a new domain.
   */
  warnings(shopId: number): Promise<ConnectionWarning[]>;
  /** Returns the id of the shop that has a warning about this new domain; undefined without such a shop. */
  shopMovedTo(domain: string): Promise<number | undefined>;
  /** Removes a shop's tokens, if the shop was connected before a time. @returns whether tokens were removed */
  disconnect(shopId: number, before: number): Promise<boolean>;
  /** Removes a shop's tokens like `disconnect`, and notes when the shop uninstalled the app. */
  uninstall(shopId: number, uninstalledAt: number): Promise<boolean>;
  /** Returns undefined for a shop that has not uninstalled the app, or that was connected again. */
  uninstallation(shopId: number): Promise<Uninstallation | undefined>;
  /** Lists shops that uninstalled the app at `time` or earlier, and whose contracts are not yet ended in the mirror. */
  uninstalledBefore(time: number): Promise<Uninstallation[]>;
  /** Notes that the mirror shows the contracts as ended. Ignored if the shop was connected again meanwhile. */
  noteContractsEnded(shopId: number, uninstalledAt: number): Promise<void>;
}
