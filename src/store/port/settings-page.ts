/**
 * What the settings page keeps from one request to the next, so that another node can answer the next one. Times in
 * epoch milliseconds. What belongs to a session goes with it. A session is named by the SHA-256 of its token.
 */
export interface SettingsPageStore {
  /**
   * Notes that a session posted a form.
   * @returns false if it posted the form before
   * @throws StoreError `conflict` if the session has ended
   */
  useForm(session: Uint8Array, form: Uint8Array): Promise<boolean>;
  /**
   * Keeps a text for the next page that a session opens at a path. New keys are among them, so the text is sealed.
   * @throws StoreError `conflict` if the session has ended
   */
  putNotice(session: Uint8Array, path: string, text: string, expiresAt: number): Promise<void>;
  /** The texts that wait for a session at a path, the oldest first. Each is given once. */
  takeNotices(session: Uint8Array, path: string, now: number): Promise<string[]>;
  /**
   * Counts a sign-in token of a network before anybody knows whether it is wrong, so that tokens that arrive together,
   * also at several nodes, all count. A right one is taken back.
   * @param at the same clock for all calls, `takeBackToken` and `removeExpired` too
   * @returns milliseconds until the network may try again; then nothing was counted. undefined if it was counted
   */
  countToken(network: string, at: number): Promise<number | undefined>;
  /** Takes one count back. */
  takeBackToken(network: string, at: number): Promise<void>;
  /** Removes all that has expired by now, links and sessions too. @param at the time of `countToken` */
  removeExpired(now: number, at: number): Promise<void>;
}
