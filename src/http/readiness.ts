import type { Sender } from "../delivery/sender.ts";
import { messageOf, SdsError } from "../domain/error.ts";
import type { OutageLog } from "../store/engine/outage-log.ts";
import type { Store } from "../store/port/store.ts";
import { failureFields, StoreError } from "../store/port/store-error.ts";

/** How long the result of a database check is valid, so that frequent requests cost at most one write a second. */
const CHECK_VALID_MS = 1_000;

interface Dependencies {
  store: Pick<Store, "check">;
  sender: Pick<Sender, "failing">;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: OutageLog;
}

/** The state that /readyz reports. */
export interface Readiness {
  /** Resolves to the reason if the program cannot take work now; otherwise to undefined. */
  reason(): Promise<string | undefined>;
  /** Whether the program is ready. The state of the database is from the last check. */
  readonly isReady: boolean;
  /** Checks the database during an outage, so that the log says when the outage ends. Never rejects. */
  watch(): Promise<void>;
  /** Notes that the program stops: it is not ready from now on. */
  noteStop(): void;
}

/** Creates the readiness. The log says when the database fails a check, and when it passes a check again. */
export function createReadiness({ store, sender, clock, log }: Dependencies): Readiness {
  let stopping = false;
  let checkedAt = Number.NEGATIVE_INFINITY;
  let checking = false;
  let failure: string | undefined;
  /** The reason that was logged last. A lost connection is not stored here, because the outage log reports it. */
  let logged: string | undefined;

  async function check(): Promise<string | undefined> {
    try {
      await store.check();
      log.noteAnswer();
      if (logged !== undefined) log.info("the database can be written again");
      logged = undefined;
      return undefined;
    } catch (thrown) {
      const reason = publicReason(thrown);
      const isOutage = thrown instanceof StoreError && thrown.reason === "lost";
      if (isOutage) log.error("the database cannot be written", failureFields(thrown));
      else if (logged !== reason) log.error("the program is not ready", reasonFields(reason, messageOf(thrown)));
      logged = isOutage ? undefined : reason;
      return reason;
    }
  }

  async function reason(): Promise<string | undefined> {
    if (stopping) return "The program is stopping.";
    // A check of a locked database takes seconds. A request that arrives during a check gets the previous result.
    if (!checking && clock() - checkedAt >= CHECK_VALID_MS) {
      checking = true;
      failure = await check();
      checking = false;
      checkedAt = clock();
    }
    return failure ?? (sender.failing ? "Deliveries cannot be recorded." : undefined);
  }

  return {
    reason,
    get isReady() {
      return !stopping && failure === undefined && !sender.failing;
    },
    async watch() {
      if (log.isOut) await reason();
    },
    noteStop() {
      stopping = true;
    },
  };
}

/** Returns the fields for the log. Leaves out an error that equals the reason. */
function reasonFields(reason: string, error: string): Record<string, string> {
  return error === reason ? { reason } : { reason, error };
}

function publicReason(thrown: unknown): string {
  if (thrown instanceof SdsError) return thrown.message;
  const isDiskFull = thrown instanceof StoreError && thrown.isDiskFull;
  return isDiskFull ? "The database cannot be written: its disk is full." : "The database cannot be written.";
}
