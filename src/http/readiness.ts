import type { Sender } from "../delivery/sender.ts";
import { messageOf, SdsError } from "../domain/error.ts";
import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";

/** How long one check of the database is valid, so that frequent requests cost one write a second. */
const CHECK_VALID_MS = 1_000;

interface Dependencies {
  store: Pick<Store, "check">;
  sender: Pick<Sender, "failing">;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
}

/** What /readyz answers. */
export interface Readiness {
  /** Resolves to why the program cannot take work now, or to undefined if it can. */
  reason(): Promise<string | undefined>;
  /** Makes the program not ready from now on, because it stops. */
  noteStop(): void;
}

/** The log says when the database fails a check, and when it passes one again. */
export function createReadiness({ store, sender, clock, log }: Dependencies): Readiness {
  let stopping = false;
  let checkedAt = Number.NEGATIVE_INFINITY;
  let checking = false;
  let failure: string | undefined;

  async function check(): Promise<string | undefined> {
    try {
      await store.check();
      if (failure !== undefined) log.info("the database can be written again");
      return undefined;
    } catch (thrown) {
      const reason = thrown instanceof SdsError ? thrown.message : "The database cannot be written.";
      if (failure !== reason) log.error("the program is not ready", { reason, error: messageOf(thrown) });
      return reason;
    }
  }

  return {
    async reason() {
      if (stopping) return "The program is stopping.";
      // A check of a locked database takes seconds. Requests that come meanwhile make no second one, and get the result
      // of the one before.
      if (!checking && clock() - checkedAt >= CHECK_VALID_MS) {
        checking = true;
        failure = await check();
        checking = false;
        checkedAt = clock();
      }
      return failure ?? (sender.failing ? "Deliveries cannot be recorded." : undefined);
    },
    noteStop() {
      stopping = true;
    },
  };
}
