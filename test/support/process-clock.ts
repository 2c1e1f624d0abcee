import { afterTest } from "./cleanup.ts";

/** Replaces the monotonic clock until the end of the test. */
export function setProcessClock(clock: (realMs: () => number) => number): void {
  const { now } = performance;
  performance.now = () => clock(() => now.call(performance));
  afterTest(() => {
    performance.now = now;
  });
}

/** @returns a function that moves the monotonic clock forward, as if the process had been paused for this time */
export function pausableProcess(): (pauseMs: number) => void {
  let ahead = 0;
  setProcessClock((realMs) => realMs() + ahead);
  return (pauseMs) => {
    ahead += pauseMs;
  };
}
