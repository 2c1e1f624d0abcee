/**
 * State of the settings page between two requests. It is stored because another node may serve the next request. State
 * of a session is removed with the session. A session is identified by the SHA-256 of its token. Times in epoch
 * milliseconds.
 */
export interface SettingsPageStore {
  /** Marks a form as used. @returns false if it was used already @throws StoreError `conflict` if the session ended */
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
   * Counts a sign-in token from a network. Call this before checking the token, because many tokens may arrive at once
   * or at several nodes. If the token is right, call `takeBackToken`.
   * @param at milliseconds of a clock that `takeBackToken` and `removeExpired` also use
   * @returns undefined if the token was counted; else milliseconds until the network may try again
   */
  countToken(network: string, at: number): Promise<number | undefined>;
  /** Undoes the call of `countToken` with the same `at`. */
  takeBackToken(network: string, at: number): Promise<void>;
  /** Removes everything expired, links and sessions included. @param at milliseconds of the clock of `countToken` */
  removeExpired(now: number, at: number): Promise<void>;
}
