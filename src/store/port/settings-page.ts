/**
 * State of the settings page between two requests, because another node may serve the next one. It ends with its
 * session. A session is named by the SHA-256 of its token. Times in epoch milliseconds.
 */
export interface SettingsPageStore {
  /**
   * Marks a form of a session as used.
   * @returns false if it was used before
   * @throws StoreError `conflict` if the session has ended
   */
  useForm(session: Uint8Array, form: Uint8Array): Promise<boolean>;
  /**
   * Stores a text for the next page that a session opens at a path. The text is encrypted with the master key, because
   * it may contain a new API key.
   * @throws StoreError `conflict` if the session has ended
   */
  putNotice(session: Uint8Array, path: string, text: string, expiresAt: number): Promise<void>;
  /** Returns and removes the texts for a session at a path, the oldest first. */
  takeNotices(session: Uint8Array, path: string, now: number): Promise<string[]>;
  /**
   * Counts a network's sign-in token before it is checked, so that tokens count even if they arrive together or at
   * several nodes. `takeBackToken` takes a right one back.
   * @param at the same clock for all calls, also of `takeBackToken` and `removeExpired`
   * @returns undefined if it was counted; else milliseconds until the network may try again
   */
  countToken(network: string, at: number): Promise<number | undefined>;
  /** Undoes one count of `countToken`. */
  takeBackToken(network: string, at: number): Promise<void>;
  /** Removes everything expired, also links and sessions. @param at the clock of `countToken` */
  removeExpired(now: number, at: number): Promise<void>;
}
