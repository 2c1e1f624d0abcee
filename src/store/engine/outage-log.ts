import type { Log } from "../../lib/log.ts";

/** How often the log says that the database still cannot be used. */
const REPEAT_MS = 60_000;
/** What waits for a silent database fails ten seconds late at most. An outage ends after so long without a failure. */
const QUIET_MS = 10_000;

/** The log of a program whose database can fail for a while. */
export interface OutageLog extends Log {
  /** Whether the database failed, and no end of that was noted. */
  readonly isOut: boolean;
  /** Call it when the database did what was asked. */
  noteAnswer(): void;
}

/**
 * While the database cannot be used, everything that needs it fails, each second or more often. This log says it when
 * it begins, once a minute while it lasts, and when it is over. It knows the failures by their field `reason`
 * (failureFields); the lines of the level `debug` have each of them.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createOutageLog(log: Log, clock: () => number): OutageLog {
  let outage: { beganAt: number; toldAt: number; failedAt: number; failures: number } | undefined;

  const secondsSince = (at: number) => Math.round((clock() - at) / 1_000);

  /** @param failed the beginning of the line that the level `debug` has: it can be one part that fails */
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
      // With many connections that wait for a server, there is none for the rest.
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
