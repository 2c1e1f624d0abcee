import { hashKey, keyFromHeader } from "../../domain/key.ts";
import type { Log } from "../../lib/log.ts";
import { type Awaitable, andThen, nextTurn } from "../../lib/waits.ts";
import type { KeyOwner, KeyStore } from "../../store/port/keys.ts";
import { failureFields } from "../../store/port/store-error.ts";
import { refusals } from "../refusals.ts";
import type { WrongKeyLog } from "./wrong-key-log.ts";

/** Minimum time between two writes of a key's last use. Otherwise each read would cost a write. */
const WRITE_INTERVAL_MS = 60_000;
/**
 * Usually, a key's first use is written at once. If the last attempt to write was less than this time ago, a job writes
 * the first use later.
 */
const ATTEMPT_INTERVAL_MS = 1_000;

interface Dependencies {
  store: Pick<KeyStore, "find" | "touch">;
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
  wrongKeys: Pick<WrongKeyLog, "count">;
}

/** Finds the shop of an API key, and remembers when the key was last used. */
export interface ApiKeyAuthenticator {
  /**
   * Finds the owner of the key in a header.
   * @param client returns the network under which the client's wrong keys are counted
   * @throws SdsError `unauthorized` unless the header has a valid key; the message never says why
   */
  authenticate(header: string | null, client: () => string): Awaitable<KeyOwner>;
  /** Writes the uses that are due; with `all`, every use. A failure is logged, and the next call tries again. */
  writeUses(options?: { all?: boolean }): Promise<void>;
}

export function createApiKeyAuthenticator(dependencies: Dependencies): ApiKeyAuthenticator {
  const { store, now, clock, log, wrongKeys } = dependencies;
  /** Times of the uses that are not written yet, by key id, in epoch milliseconds. */
  const uses = new Map<string, number>();
  /** When the use of a key was last written, by key id. Times of `clock`. */
  const writtenAt = new Map<string, number>();
  let attemptedAt = Number.NEGATIVE_INFINITY;
  let soon: Promise<void> | undefined;

  /**
   * Writes a key's first use in the next turn of the event loop. The request does not wait for the write, because a
   * write takes seconds while the database is locked.
   */
  function writeSoon(): void {
    if (soon !== undefined || clock() - attemptedAt < ATTEMPT_INTERVAL_MS) return;
    soon = nextTurn()
      .then(() => writeUses())
      .finally(() => {
        soon = undefined;
      });
  }

  async function writeUses({ all = false } = {}): Promise<void> {
    const at = clock();
    const isDue = (id: string) => at - (writtenAt.get(id) ?? Number.NEGATIVE_INFINITY) >= WRITE_INTERVAL_MS;
    const due = new Map([...uses].filter(([id]) => all || isDue(id)));
    if (due.size === 0) return;
    attemptedAt = at;
    try {
      await store.touch(due);
    } catch (thrown) {
      log.warn("cannot write when keys were last used", failureFields(thrown));
      return;
    }
    for (const [id, usedAt] of due) {
      writtenAt.set(id, at);
      // The key may have been used again during the write.
      if (uses.get(id) === usedAt) uses.delete(id);
    }
  }

  function noteUse({ keyId, lastUsedAt }: KeyOwner): void {
    uses.set(keyId, now());
    if (lastUsedAt === null) writeSoon();
    else if (!writtenAt.has(keyId)) writtenAt.set(keyId, clockAt(lastUsedAt, dependencies));
  }

  return {
    authenticate(header, client) {
      const key = keyFromHeader(header);
      const found = key === undefined ? undefined : store.find(hashKey(key));
      return andThen(found, (owner) => {
        if (owner === undefined) {
          if (header !== null) wrongKeys.count(client());
          throw refusals.unknownKey();
        }
        noteUse(owner);
        return owner;
      });
    },
    async writeUses(options) {
      // Waits for a running write, because the store closes after this call when the program stops.
      await soon;
      await writeUses(options);
    },
  };
}

/**
 * Converts a stored time to a time of `clock`. A future time was written before the clock was set back. It is converted
 * to a time long ago.
 */
function clockAt(storedAt: number, { now, clock }: Pick<Dependencies, "now" | "clock">): number {
  const ageMs = now() - storedAt;
  return ageMs < 0 ? Number.NEGATIVE_INFINITY : clock() - ageMs;
}
