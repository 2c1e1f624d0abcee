import type { ApiKey } from "../../domain/key.ts";
import type { Plan } from "../../domain/shop.ts";
import type { Awaitable } from "../../lib/waits.ts";

/** The shop of an API key, with its plan. */
export interface KeyOwner {
  keyId: string;
  shopId: number;
  domain: string;
  /** See `MirroredShop`. */
  firstDomain: string;
  plan: Plan;
  /** The number of the shop's last change. */
  changeCount: number;
  /** The branch of the shop's changes. A failover, a restore or a move begins a branch. Empty for the first branch. */
  branch: string;
  /** Epoch milliseconds. */
  lastUsedAt: number | null;
}

export interface KeyStore {
  /** @throws SdsError `conflict` if the same key exists, even if it is revoked */
  add(shopId: number, key: ApiKey, hash: Uint8Array): Promise<void>;
  /** Lists keys that are not revoked, oldest first. */
  list(shopId: number): Promise<ApiKey[]>;
  /**
   * Reads the database each time.
   * @returns undefined for an unknown or revoked key, and for a key of a shop that is still arriving
   */
  find(hash: Uint8Array): Awaitable<KeyOwner | undefined>;
  /** Revokes a key. @throws SdsError `not_found`; `invalid` if several keys have the fingerprint */
  revoke(shopId: number, idOrFingerprint: string, now: number): Promise<ApiKey & { revokedAt: number }>;
  /** Notes when keys were last used. Never replaces a later time. @param uses epoch milliseconds by key id */
  touch(uses: ReadonlyMap<string, number>): Promise<void>;
}
