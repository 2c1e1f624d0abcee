/** Waits for a time in milliseconds, or until the signal is aborted. Never rejects. */
export type Sleep = (waitMs: number, signal?: AbortSignal) => Promise<void>;
