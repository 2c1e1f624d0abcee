import { SdsError } from "../domain/error.ts";
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

/**
 * Finds a key that is not revoked.
 * @param which its id or fingerprint
 * @throws SdsError `not_found`, or `invalid` if several keys have that fingerprint
 */
export async function findKey({ keys }: Pick<Store, "keys">, shop: Shop, which: string): Promise<ApiKey> {
  const found = (await keys.list(shop.id)).filter(({ id, fingerprint }) => id === which || fingerprint === which);
  const [key, ...others] = found;
  if (key === undefined) throw new SdsError("not_found", `there is no key ${which}, or it is revoked already`);
  if (others.length === 0) return key;
  throw new SdsError(
    "invalid",
    `several keys begin with ${which}: name one by its id (${found.map(({ id }) => id).join(", ")})`,
  );
}

/** Revokes a key: the next request with it is refused. Parameters and errors are those of `findKey`. */
export async function revokeKey(
  store: Pick<Store, "keys">,
  shop: Shop,
  which: string,
  now: number,
): Promise<{ entry: ApiKey; revokedAt: number }> {
  const entry = await findKey(store, shop, which);
  const { revokedAt } = await store.keys.revoke(shop.id, entry.id, now);
  return { entry, revokedAt };
}
