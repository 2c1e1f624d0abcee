import type { Shop } from "../../domain/shop.ts";

/** Who may open the settings page. Of tokens only the SHA-256 is stored. Times in epoch milliseconds. */
export interface SessionStore {
  addLink(shopId: number, hash: Uint8Array, expiresAt: number): Promise<void>;
  /** Uses a sign-in link up and begins a session with it. @returns false for a link that is unknown, used or expired */
  begin(link: Uint8Array, session: Uint8Array, now: number, expiresAt: number): Promise<boolean>;
  /** The shop of a session. Reads the database each time, because any process may end it. */
  find(session: Uint8Array, now: number): Promise<Shop | undefined>;
  end(session: Uint8Array): Promise<void>;
  /** Ends all sessions of a shop, and removes its unused links. @returns how many sessions had not expired */
  endAll(shopId: number, now: number): Promise<number>;
  /** Where a running `serve` listens, for commands that print its address; undefined if none noted it. */
  address(): Promise<string | undefined>;
  noteAddress(address: string): Promise<void>;
  /** Removes the note, unless another process has written its own. */
  forgetAddress(address: string): Promise<void>;
}
