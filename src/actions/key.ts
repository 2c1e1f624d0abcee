import { type ApiKey, describeKey, generateKey, hashKey } from "../domain/key.ts";
import type { Shop } from "../domain/shop.ts";
import type { Store } from "../store/port/store.ts";
import { type Actor, checkAccess } from "./access.ts";

interface KeyDependencies {
  store: Pick<Store, "keys">;
  random: (bytes: number) => Uint8Array;
}

interface KeyRequest {
  shop: Shop;
  label: string;
  actor: Actor;
  /** A key that `parseKey` accepted, of an older system that kept it in plain text. Without it, a new key is made. */
  legacyKey?: string;
}

/**
 * Stores the hash of a key, never the key itself, so a new key can be shown only now.
 * @throws SdsError `plan_required` for a merchant, `invalid` for the label, `conflict` for a legacy key stored before
 */
export async function createKey(
  { store, random }: KeyDependencies,
  { shop, label, actor, legacyKey }: KeyRequest,
  now: number,
): Promise<{ entry: ApiKey; plaintext: string; warnings: string[] }> {
  const warnings = checkAccess(shop, "API access", actor);
  const plaintext = legacyKey ?? generateKey(random);
  const entry = describeKey(plaintext, label, legacyKey !== undefined, random, now);
  await store.keys.add(shop.id, entry, hashKey(plaintext));
  return { entry, plaintext, warnings };
}
