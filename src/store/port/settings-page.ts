/**
 * State of the settings page between two requests. It is stored because another node may serve the next request. It
 * ends with its session. The SHA-256 of its token names a session. Times in epoch milliseconds.
 */
export interface SettingsPageStore {
  /** Marks a form as used. @returns false if it was before @throws StoreError `conflict` if the session has ended */
  useForm(session: Uint8Array, form: Uint8Array): Promise<boolean>;
  /**
   * Stores a text for the next page that a session opens at a path. Encrypts the text with the master key, because it
   * may contain a new API key.
   * @throws StoreError `conflict` if the session has ended
   */
  putNotice(session: Uint8Array, path: string, text: string, expiresAt: number): Promise<void>;
  /** Returns and removes the texts for a session at a path, the oldest first. */
  takeNotices(session: Uint8Array, path: string, now: number): Promise<string[]>;
  /**
   * Counts a network's sign-in token before the token is checked. So tokens count even if they arrive together, or at
   * several nodes. `takeBackToken` undoes this for a right token.
   * @param at from the same clock in all calls, also of `takeBackToken` and `removeExpired`
   * @returns undefined if the token was counted; else milliseconds until the network may try again
   */
  countToken(network: string, at: number): Promise<number | undefined>;
  /** Undoes one count of `countToken`. */
  takeBackToken(network: string, at: number): Promise<void>;
  /** Removes everything expired, links and sessions included. @param at from the clock of `countToken` */
  removeExpired(now: number, at: number): Promise<void>;
}
