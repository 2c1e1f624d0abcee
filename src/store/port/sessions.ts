import type { Shop } from "../../domain/shop.ts";

/** Sessions and sign-in links of the settings page, by the SHA-256 of their tokens. Times in epoch milliseconds. */
export interface SessionStore {
  addLink(shopId: number, hash: Uint8Array, expiresAt: number): Promise<void>;
  /** Exchanges a sign-in link for a session. @returns false for an unknown, used or expired link */
  begin(link: Uint8Array, session: Uint8Array, now: number, expiresAt: number): Promise<boolean>;
  /** Returns the shop of a session. Always reads the database, because any process may end the session. */
  find(session: Uint8Array, now: number): Promise<Shop | undefined>;
  end(session: Uint8Array): Promise<void>;
  /** Ends all sessions and links of a shop. @returns the number of sessions that had not expired */
  endAll(shopId: number, now: number): Promise<number>;
  /** Returns the address of a running `serve`, for commands; undefined without one. */
  address(): Promise<string | undefined>;
  noteAddress(address: string): Promise<void>;
  /** Removes the address, unless another process has stored its own. */
  forgetAddress(address: string): Promise<void>;
}
