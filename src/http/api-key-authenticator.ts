import { messageOf, SdsError } from "../domain/error.ts";
import { hashKey, keyFromHeader } from "../domain/key.ts";
import type { Log } from "../log.ts";
import type { KeyOwner, KeyStore } from "../store/keys.ts";

/** The last use of a key is written at most this often, because a read must not cost a write. */
const WRITE_INTERVAL_MS = 60_000;

/** Finds the shop of an API key, and remembers when the key was last used. */
export interface ApiKeyAuthenticator {
  /** @throws SdsError `unauthorized` unless the header has a valid key; the message never says why */
  authenticate(header: string | null): Promise<KeyOwner>;
  /**
   * Writes the uses that are due or, with `all`, all that are not written yet. A failure is logged, and they stay due.
   */
  writeUses(options?: { all?: boolean }): Promise<void>;
}

export function createApiKeyAuthenticator(store: KeyStore, now: () => number, log: Log): ApiKeyAuthenticator {
  /** Uses that are not written yet, by key id. */
  const uses = new Map<string, number>();
  /** When this process last wrote the use of a key, by key id. It starts with the time that the store has. */
  const writtenAt = new Map<string, number>();

  async function writeUses({ all = false } = {}): Promise<void> {
    const at = now();
    const due = new Map([...uses].filter(([id]) => all || at - (writtenAt.get(id) ?? 0) >= WRITE_INTERVAL_MS));
    if (due.size === 0) return;
    try {
      await store.touch(due);
    } catch (thrown) {
      log.warn("cannot write when keys were last used", { error: messageOf(thrown) });
      return;
    }
    for (const [id, usedAt] of due) {
      writtenAt.set(id, at);
      // The key may have been used again during the write.
      if (uses.get(id) === usedAt) uses.delete(id);
    }
  }

  return {
    async authenticate(header) {
      const key = keyFromHeader(header);
      const owner = key === undefined ? undefined : await store.find(hashKey(key));
      if (owner === undefined)
        throw new SdsError("unauthorized", "Send a valid API key as `Authorization: Bearer cad_pk_...`.");
      uses.set(owner.keyId, now());
      if (owner.lastUsedAt === null) await writeUses();
      else if (!writtenAt.has(owner.keyId)) writtenAt.set(owner.keyId, owner.lastUsedAt);
      return owner;
    },
    writeUses,
  };
}
