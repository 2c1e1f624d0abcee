/** Waits so many milliseconds, or until the signal. Never rejects. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;
