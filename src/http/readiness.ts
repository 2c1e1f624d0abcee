import type { Sender } from "../delivery/sender.ts";
import type { Store } from "../store/store.ts";

/** How long one check of the database is valid, so that frequent requests cost nothing. */
const CHECK_VALID_MS = 1_000;

/** What /readyz answers. */
export interface Readiness {
  /** Resolves to why the program cannot take work now, or to undefined if it can. */
  reason(): Promise<string | undefined>;
  /** Makes the program not ready from now on, because it stops. */
  noteStop(): void;
}

export function createReadiness(
  store: Pick<Store, "check">,
  sender: Pick<Sender, "failing">,
  now: () => number,
): Readiness {
  let stopping = false;
  let checkedAt = Number.NEGATIVE_INFINITY;
  let failure: string | undefined;

  async function check(): Promise<string | undefined> {
    try {
      await store.check();
      return undefined;
    } catch {
      return "The database cannot be written.";
    }
  }

  return {
    async reason() {
      if (stopping) return "The program is stopping.";
      if (now() - checkedAt >= CHECK_VALID_MS) {
        checkedAt = now();
        failure = await check();
      }
      return failure ?? (sender.failing ? "Deliveries cannot be recorded." : undefined);
    },
    noteStop() {
      stopping = true;
    },
  };
}
