import { SdsError } from "../domain/error.ts";
import { type ApiKey, describeKey, generateKey, hashKey, isKey } from "../domain/key.ts";
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
}

interface AddedKey {
  entry: ApiKey;
  warnings: string[];
}

/**
 * Creates a key. Only its hash is stored, so the key itself can be shown only now.
 * @throws SdsError `plan_required` for a merchant, `invalid` for the label
 */
export async function createKey(
  dependencies: KeyDependencies,
  request: KeyRequest,
  now: number,
): Promise<AddedKey & { plaintext: string }> {
  const plaintext = generateKey(dependencies.random);
  return { ...(await addKey(dependencies, request, { plaintext, legacy: false }, now)), plaintext };
}

/** Reads a key that an older system made. @throws SdsError `invalid` */
export function parseKey(text: string): string {
  if (isKey(text)) return text;
  throw new SdsError("invalid", "the key must be cad_pk_ and 48 lower-case hexadecimal digits");
}

/**
 * Stores a key of an older system and marks it as legacy, because that system kept it in plain text.
 * @throws SdsError `invalid` for the key or the label, `conflict` if the key was stored before
 */
export async function importLegacyKey(
  dependencies: KeyDependencies,
  request: KeyRequest & { plaintext: string },
  now: number,
): Promise<AddedKey> {
  return addKey(dependencies, request, { plaintext: parseKey(request.plaintext), legacy: true }, now);
}

async function addKey(
  { store, random }: KeyDependencies,
  { shop, label, actor }: KeyRequest,
  { plaintext, legacy }: { plaintext: string; legacy: boolean },
  now: number,
): Promise<AddedKey> {
  const warnings = checkAccess(shop, "API access", actor);
  const entry = describeKey(plaintext, label, legacy, random, now);
  await store.keys.add(shop.id, entry, hashKey(plaintext));
  return { entry, warnings };
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
