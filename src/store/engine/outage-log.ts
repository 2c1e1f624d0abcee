import type { Log } from "../../lib/log.ts";

/** Minimum time between two log lines during an outage. */
const REPEAT_MS = 60_000;
/** The first answer after this time without a failure ends an outage. In an outage, failures are closer together. */
const QUIET_MS = 10_000;

/** A log that summarizes outages of the database. */
export interface OutageLog extends Log {
  /** Whether an outage is going on. */
  readonly isOut: boolean;
  /** Call this after each successful use of the database. */
  noteAnswer(): void;
}

/**
 * Creates the log. During an outage each use of the database fails, every second or more often. So this log writes a
 * line when the outage begins, a line when it ends, and at most one line a minute in between. The level `debug` has
 * every failure.
 * The log recognizes failures by their field `reason` (failureFields).
 * @param clock milliseconds of a clock that only goes forward
 */
export function createOutageLog(log: Log, clock: () => number): OutageLog {
  let outage: { beganAt: number; toldAt: number; failedAt: number; failures: number } | undefined;

  const secondsSince = (at: number) => Math.round((clock() - at) / 1_000);

  /**
   * Counts a failure.
   * @param failed the first part of the logged message, such as "cannot read the figures of the metrics"
   */
  function noteFailure(failed: string, error: string | number | boolean | null | undefined): void {
    const at = clock();
    if (outage === undefined) {
      outage = { beganAt: at, toldAt: at, failedAt: at, failures: 1 };
      log.error("the database cannot be used; sds tries again", { failed, error });
      return;
    }
    outage.failedAt = at;
    outage.failures += 1;
    if (at - outage.toldAt < REPEAT_MS) return;
    outage.toldAt = at;
    const { beganAt, failures } = outage;
    log.error("the database still cannot be used", { failed, error, seconds: secondsSince(beganAt), failures });
  }

  const writer = (level: "warn" | "error"): Log["warn"] => {
    return (message, fields = {}) => {
      const isLost = fields["reason"] === "lost";
      // During an outage, `busy` only means that all connections wait for the server. So `busy` is part of the outage.
      const isOfOutage = isLost || (fields["reason"] === "busy" && outage !== undefined);
      log[isOfOutage ? "debug" : level](message, fields);
      if (isLost) noteFailure(message.split(";", 1)[0] ?? message, fields["error"]);
    };
  };

  return {
    debug: log.debug,
    info: log.info,
    warn: writer("warn"),
    error: writer("error"),
    get isOut() {
      return outage !== undefined;
    },
    noteAnswer() {
      if (outage === undefined || clock() - outage.failedAt < QUIET_MS) return;
      const { beganAt, failures } = outage;
      log.info("the database can be used again", { seconds: secondsSince(beganAt), failures });
      outage = undefined;
    },
  };
}
