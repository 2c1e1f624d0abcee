import type { AuditEntry } from "../../domain/audit.ts";
import type { Shop } from "../../domain/shop.ts";

interface StoredSession {
  shop: Shop;
  expiresAt: number;
}

/** Sessions and sign-in links of the settings page, by the SHA-256 of their tokens. Times in epoch milliseconds. */
export interface SessionStore {
  addLink(shopId: number, hash: Uint8Array, expiresAt: number): Promise<void>;
  /**
   * Exchanges a sign-in link for a session.
   * @param entry entry for the audit list of the link's shop. The link must be valid at the entry's time.
   * @returns false for an unknown, used or expired link
   */
  begin(link: Uint8Array, session: Uint8Array, entry: AuditEntry, expiresAt: number): Promise<boolean>;
  /** Returns a session that has not expired. Always reads the database, because any process may end the session. */
  find(session: Uint8Array, now: number): Promise<StoredSession | undefined>;
  /** Extends a session, up to a maximum age. Never shortens it. */
  renew(session: Uint8Array, expiresAt: number, maxAgeMs: number): Promise<void>;
  /**
   * Stores or extends a session that did not begin with a sign-in link.
   * @throws StoreError `conflict` if the shop is being removed
   */
  put(session: Uint8Array, shopId: number, now: number, expiresAt: number): Promise<void>;
  end(session: Uint8Array): Promise<void>;
  /** Ends all sessions and links of a shop. @returns the number of sessions that had not expired */
  endAll(shopId: number, now: number): Promise<number>;
  /** Returns the address of a running `serve`, for commands; undefined without one. */
  address(): Promise<string | undefined>;
  noteAddress(address: string): Promise<void>;
  /** Removes the address, unless another process has stored its own address. */
  forgetAddress(address: string): Promise<void>;
}
