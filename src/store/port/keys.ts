import type { ApiKey } from "../../domain/key.ts";
import type { Plan } from "../../domain/shop.ts";
import type { Awaitable } from "../../lib/waits.ts";

/** The shop of an API key, with its plan. */
export interface KeyOwner {
  keyId: string;
  shopId: number;
  domain: string;
  plan: Plan;
  /** The number of the shop's last change. */
  changeCount: number;
  /** Epoch milliseconds. */
  lastUsedAt: number | null;
}

export interface KeyStore {
  /** @throws SdsError `conflict` if the same key is stored already, revoked ones included */
  add(shopId: number, key: ApiKey, hash: Uint8Array): Promise<void>;
  /** Keys that are not revoked, oldest first. */
  list(shopId: number): Promise<ApiKey[]>;
  /** @returns undefined for an unknown or revoked key. Reads the database each time, because any process may revoke. */
  find(hash: Uint8Array): Awaitable<KeyOwner | undefined>;
  /**
   * Revokes a key: the next request with it is refused.
   * @throws SdsError `not_found`, or `invalid` if several keys have that fingerprint
   */
  revoke(shopId: number, idOrFingerprint: string, now: number): Promise<ApiKey & { revokedAt: number }>;
  /** Notes when keys were last used, by key id, epoch milliseconds. A later time that is stored stays. */
  touch(uses: ReadonlyMap<string, number>): Promise<void>;
}
