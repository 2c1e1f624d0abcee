import type { Alert } from "../../domain/deliveries/alert.ts";
import type { ConnectionKind } from "../../domain/platform/connection.ts";
import type { ShopRef } from "../../domain/shop.ts";

/** An alert whose beginning or end must be reported by notices. */
export interface DueAlert extends Alert {
  shop: ShopRef;
  isOver: boolean;
  /** How the shop is connected; null if it is not. */
  connection: ConnectionKind | null;
}

/** Who gets notices of alerts, in addition to the shop's workflows. */
export interface AlertChannels {
  /** Whether the operator wants posts. */
  operator: boolean;
  /** Whether e-mails can be sent. */
  email: boolean;
}

/** The content of a notice. */
export interface AlertNotice extends Alert {
  isOver: boolean;
  /** URL of the page that shows the alert. */
  link: string;
}

/** A notice that only this process may send now. */
export interface ClaimedNotice {
  number: number;
  shop: ShopRef;
  /** Number of attempts, this one included. */
  attempts: number;
  createdAt: number;
  /** null for the e-mail that asks to confirm the address. */
  notice: AlertNotice | null;
  /** null for a post to the operator. */
  recipient: { address: string; token: string } | null;
}

/** An e-mail address that a merchant saved. */
export interface AlertAddress {
  number: number;
  address: string;
  addedAt: number;
  /** null until somebody opened the link in the first e-mail. */
  confirmedAt: number | null;
}

/** Maximum number of addresses of a shop. */
export const MAX_ADDRESSES = 5;
/** Maximum number of addresses that a shop may add in a day, even if it removes some. Each address gets an e-mail. */
export const MAX_ADDED_IN_A_DAY = 10;
/** How often a shop may add the same address in a day. Otherwise a shop could send many e-mails to a stranger. */
export const MAX_SAME_IN_A_DAY = 3;

/** The addresses that get e-mails about alerts. `hash` is the SHA-256 of the token in an e-mail's links. */
export interface AlertAddressStore {
  addresses(shopId: number): Promise<AlertAddress[]>;
  /**
   * Adds an address, and queues the e-mail that asks to confirm it.
   * @returns `known` if the shop has the address, `full` if the shop has MAX_ADDRESSES, `too many` if the
   *   shop has reached MAX_ADDED_IN_A_DAY or MAX_SAME_IN_A_DAY
   */
  addAddress(shopId: number, address: string, now: number): Promise<"added" | "known" | "full" | "too many">;
  /** Removes an address and its waiting e-mails. @returns the address; undefined for an unknown number */
  removeAddress(shopId: number, number: number, now: number): Promise<string | undefined>;
  findAddress(hash: Uint8Array): Promise<(AlertAddress & { shop: ShopRef }) | undefined>;
  confirmAddress(hash: Uint8Array, now: number): Promise<void>;
}

/**
 * Alerts of shops, and their notices. Alerts are written in the transaction that records the attempts, or that records
 * a connection's trouble. Times in epoch milliseconds.
 */
export interface AlertStore extends AlertAddressStore {
  /** Returns the current alerts, the most serious first. */
  list(shopId: number): Promise<Alert[]>;
  /** Returns the alerts that need notices now. The beginning of an alert is reported at most once a day. */
  due(now: number): Promise<DueAlert[]>;
  /**
   * Queues the notices of an alert and the shop's workflow trigger, in one transaction.
   * @returns false if another process has queued them, or the alert has changed
   */
  tell(alert: DueAlert, channels: AlertChannels, link: string, now: number): Promise<boolean>;
  /**
   * Claims the next due notice. No other process sends the notice before its next attempt is due.
   * @param nextAttemptAt gets the number of earlier attempts, and returns when the next attempt is due
   */
  claimNotice(now: number, nextAttemptAt: (attempts: number) => number): Promise<ClaimedNotice | undefined>;
  /** Removes a notice that was sent or given up. */
  removeNotice(number: number): Promise<void>;
}
