import { messageOf, SdsError } from "../domain/error.ts";
import { hashKey, keyFromHeader } from "../domain/key.ts";
import type { Log } from "../log.ts";
import type { KeyOwner, KeyStore } from "../store/keys.ts";

/** A key's last use is written at most this often, in milliseconds: a read must not cost a write. */
const TOUCH_EVERY = 60_000;

/** Tells whom a key speaks for, and remembers when it last did. */
export class ApiKeyAuthenticator {
  private readonly store: KeyStore;
  private readonly now: () => number;
  private readonly log: Log;
  /** Uses that are not written yet, by key id. */
  private uses = new Map<string, number>();
  /** When this process last wrote a key's use; at first, when the stored use was. */
  private readonly writtenAt = new Map<string, number>();

  constructor(store: KeyStore, now: () => number, log: Log) {
    this.store = store;
    this.now = now;
    this.log = log;
  }

  /** @throws SdsError `unauthorized` for whatever is not a key in force, without a word on why */
  async authenticate(header: string | null): Promise<KeyOwner> {
    const key = keyFromHeader(header);
    const owner = key === undefined ? undefined : await this.store.find(hashKey(key));
    if (owner === undefined) throw new SdsError("unauthorized", "Send a valid API key as `Authorization: Bearer cad_pk_...`.");
    this.uses.set(owner.keyId, this.now());
    if (owner.lastUsedAt === null) await this.writeUses();
    else if (!this.writtenAt.has(owner.keyId)) this.writtenAt.set(owner.keyId, owner.lastUsedAt);
    return owner;
  }

  /** Writes the uses that are due or, with `all`, every one that is not written yet. A failure is logged: they stay due. */
  async writeUses({ all = false } = {}): Promise<void> {
    const now = this.now();
    const due = new Map([...this.uses].filter(([id]) => all || now - (this.writtenAt.get(id) ?? 0) >= TOUCH_EVERY));
    if (due.size === 0) return;
    try {
      await this.store.touch(due);
    } catch (thrown) {
      this.log.warn("cannot write when keys were last used", { error: messageOf(thrown) });
      return;
    }
    for (const [id, at] of due) {
      this.writtenAt.set(id, now);
      if (this.uses.get(id) === at) this.uses.delete(id);
    }
  }
}
