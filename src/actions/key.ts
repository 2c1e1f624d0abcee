import type { Actor } from "../domain/audit.ts";
import { invalid } from "../domain/error.ts";
import { type ApiKey, describeKey, generateKey, hashKey } from "../domain/key.ts";
import type { Shop } from "../domain/shop.ts";
import type { Store } from "../store/port/store.ts";
import { checkAccess } from "./access.ts";
import { type ActorInShop, audited } from "./audit.ts";

interface KeyDependencies {
  store: Pick<Store, "keys" | "audited">;
  random: (bytes: number) => Uint8Array;
}

interface KeyRequest {
  shop: Shop;
  label: string;
  actor: Actor;
  /** A plain-text key of an older system, which `parseKey` accepted. Without a legacy key, a new key is made. */
  legacyKey?: string;
}

/** If a shop has this many keys, a merchant cannot make another, because the settings page lists all keys. */
const MAX_KEYS = 100;

/**
 * Creates a key and stores only its hash. So the caller must show the key now: nobody can read it later.
 * @throws SdsError `plan_required` for a merchant without the plan; `invalid` for a merchant with MAX_KEYS keys, or for
 *   a wrong label; `conflict` for a legacy key that is already stored
 */
export async function createKey(
  { store, random }: KeyDependencies,
  { shop, label, actor, legacyKey }: KeyRequest,
  now: number,
): Promise<{ entry: ApiKey; plaintext: string; warnings: string[] }> {
  const warnings = checkAccess(shop, "API access", actor);
  if (actor.role === "merchant" && (await store.keys.list(shop.id)).length >= MAX_KEYS)
    throw invalid(`a shop can have ${MAX_KEYS} keys: revoke one that no system uses`);
  const same = await findKeyWithLabel(store, shop, label);
  if (same !== undefined) warnings.push(`the key ${same.fingerprint}… has the label ${same.label} too`);
  const plaintext = legacyKey ?? generateKey(random);
  const made = { label, createdBy: actor.who, legacy: legacyKey !== undefined };
  const entry = describeKey(plaintext, made, random, now);
  const after = { label: entry.label, fingerprint: entry.fingerprint };
  const { keys } = audited(store, { shop, actor }, now, "key.created", { subject: entry.id, after });
  await keys.add(shop.id, entry, hashKey(plaintext));
  return { entry, plaintext, warnings };
}

/** Finds a key of the shop by its label. Spaces around the label are ignored. */
export async function findKeyWithLabel(
  { keys }: Pick<Store, "keys">,
  shop: Shop,
  label: string,
): Promise<ApiKey | undefined> {
  const wanted = label.trim();
  return (await keys.list(shop.id)).find((key) => key.label === wanted);
}

/** Revokes a key. @throws SdsError `not_found`; `invalid` if several keys begin with the text */
export function revokeKey(
  store: Pick<Store, "audited">,
  by: ActorInShop,
  idOrFingerprint: string,
  now: number,
): ReturnType<Store["keys"]["revoke"]> {
  const { keys } = audited(store, by, now, "key.revoked", { subject: idOrFingerprint });
  return keys.revoke(by.shop.id, idOrFingerprint, now);
}
