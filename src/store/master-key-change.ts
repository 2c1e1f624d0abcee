import { existsSync, renameSync } from "node:fs";
import type { AuditEntry } from "../domain/audit.ts";
import { SdsError } from "../domain/error.ts";
import { type LoneOptions, openAlone } from "./copy-store.ts";
import { newMasterKey, readMasterKey, readMasterKeyFile, replaceMasterKeys } from "./files/master-key.ts";
import { vaultWith } from "./files/vault.ts";
import {
  type LoneDatabase,
  type LostSecrets,
  lostSecrets,
  replaceSecrets,
  resealSecrets,
} from "./quiet/sealed-secrets.ts";

export type { LostSecrets };

export interface KeyChange extends LoneOptions {
  masterKeyFile: string;
}

/**
 * Changes the master key. First the file gets both keys. Then one transaction seals all secrets with the new key. Then
 * the old key is removed from the file. So after a kill at any step, the file has the key of the stored secrets.
 * @throws SdsError `failed` if another process uses the database, or the file does not have the key of the secrets
 */
export async function rotateMasterKey(change: KeyChange): Promise<void> {
  const { masterKeyFile: path, random } = change;
  await alone(change, async ({ db, sealedWith }) => {
    const old = await readMasterKey(path, sealedWith);
    if (old === undefined || old.fingerprint !== sealedWith)
      throw new SdsError("failed", `${path} is not the key of the stored secrets: put that one back first`);
    const next = await newMasterKey(random);
    replaceMasterKeys(path, [next, old], random);
    await resealSecrets(db, await vaultWith(old, path, random), await vaultWith(next, path, random));
    replaceMasterKeys(path, [next], random);
  });
}

/** Lists what `resetMasterKey` would replace. @throws SdsError as `resetMasterKey` does */
export function masterKeyLoss(change: KeyChange): Promise<LostSecrets[]> {
  return alone(change, async ({ db, sealedWith }) => {
    await checkLost(change.masterKeyFile, sealedWith);
    return lostSecrets(db);
  });
}

/**
 * Replaces a lost master key and all secrets. If the key file exists, it is renamed and kept.
 * @param entry goes into the audit list of each shop
 * @returns what was replaced
 * @throws SdsError `conflict` if the master key is not lost, or not needed yet; `failed` if its file is unreadable, or
 *   another process uses the database
 */
export async function resetMasterKey(change: KeyChange, entry: AuditEntry): Promise<LostSecrets[]> {
  const { masterKeyFile: path, random, now } = change;
  return alone(change, async ({ db, sealedWith }) => {
    await checkLost(path, sealedWith);
    const lost = await lostSecrets(db);
    const key = await newMasterKey(random);
    if (existsSync(path)) renameSync(path, `${path}.before-reset-${now()}`);
    replaceMasterKeys(path, [key], random);
    await replaceSecrets(db, await vaultWith(key, path, random), random, entry);
    return lost;
  });
}

async function checkLost(path: string, sealedWith: string | undefined): Promise<void> {
  if (sealedWith === undefined) throw new SdsError("conflict", "there are no secrets yet, so no master key is needed");
  // Throws for an unreadable file, because the file may have the key. A file that is not a key is treated as missing.
  readMasterKeyFile(path);
  const key = await readMasterKey(path, sealedWith).catch(() => undefined);
  if (key?.fingerprint === sealedWith)
    throw new SdsError("conflict", `${path} is the key of the stored secrets: \`sds master-key rotate\` changes it`);
}

async function alone<T>(change: KeyChange, work: (lone: LoneDatabase) => Promise<T>): Promise<T> {
  const lone = await openAlone(change);
  try {
    return await work(lone);
  } finally {
    await lone.close();
  }
}
