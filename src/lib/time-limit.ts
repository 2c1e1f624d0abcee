/** A limit that begins now. */
export interface TimeLimit {
  /** Aborted at its end. */
  signal: AbortSignal;
  /**
   * Whether it has ended. In a process that stood still, the signal comes later than what else happened meanwhile.
   */
  isOver(): boolean;
}

export function createTimeLimit(timeoutMs: number): TimeLimit {
  const signal = AbortSignal.timeout(timeoutMs);
  const endsAt = performance.now() + timeoutMs;
  return { signal, isOver: () => signal.aborted || performance.now() > endsAt };
}
