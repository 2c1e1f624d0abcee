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
  /** Who makes the key, such as "staff 42". */
  createdBy: string;
  /** A plain-text key of an older system, which `parseKey` accepted. Without a legacy key, a new key is made. */
  legacyKey?: string;
}

/**
 * Stores only the hash of a key. So the caller must show a new key now: nobody can read it later.
 * @throws SdsError `plan_required` for a merchant, `invalid` for the label, `conflict` for a legacy key stored before
 */
export async function createKey(
  { store, random }: KeyDependencies,
  { shop, label, actor, createdBy, legacyKey }: KeyRequest,
  now: number,
): Promise<{ entry: ApiKey; plaintext: string; warnings: string[] }> {
  const warnings = checkAccess(shop, "API access", actor);
  const same = await findKeyWithLabel(store, shop, label);
  if (same !== undefined) warnings.push(`the key ${same.fingerprint}… has the label ${same.label} too`);
  const plaintext = legacyKey ?? generateKey(random);
  const entry = describeKey(plaintext, { label, createdBy, legacy: legacyKey !== undefined }, random, now);
  await store.keys.add(shop.id, entry, hashKey(plaintext));
  return { entry, plaintext, warnings };
}

/** Finds a key of the shop with this label, apart from spaces around it. */
export async function findKeyWithLabel(
  { keys }: Pick<Store, "keys">,
  shop: Shop,
  label: string,
): Promise<ApiKey | undefined> {
  const wanted = label.trim();
  return (await keys.list(shop.id)).find((key) => key.label === wanted);
}
